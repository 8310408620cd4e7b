/* SPDX-License-Identifier: Apache-2.0 */
/* An option that lies outside of its struct. */
#define WRONG_OPTIONS                                                                              \
	{                                                                                          \
		"late", BALEEN_INTEGER, 4, NULL, 0, 0, NULL, ""                                    \
	}
#include "wrong.h"
