/* SPDX-License-Identifier: Apache-2.0 */
/* It has no hook at all. */
#define WRONG_FIELDS .needs = 0
#include "wrong.h"
