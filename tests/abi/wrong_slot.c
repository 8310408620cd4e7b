/* SPDX-License-Identifier: Apache-2.0 */
/* It wants more per-query memory than there is. */
#define WRONG_FIELDS .on_query = pass, .slot_size = 4000
#include "wrong.h"
