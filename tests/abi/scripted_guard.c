/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted plugin as a guard. */
#define SCRIPTED_NAME "scripted-guard"
#define SCRIPTED_KIND BALEEN_GUARD
#include "scripted.c"
