/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plugin. */
int wrong_entry(void);

int wrong_entry(void)
{
	return 1;
}
