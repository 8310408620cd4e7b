/* SPDX-License-Identifier: Apache-2.0 */
/* It does not start. */
#define WRONG_FIELDS .on_query = pass, .start = refuse
#include "wrong.h"
