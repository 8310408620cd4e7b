/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry refuses this host. */
#define WRONG_DESCRIPTOR NULL
#include "wrong.h"
