/* SPDX-License-Identifier: Apache-2.0 */
/* There is no such kind. */
#define WRONG_KIND ((enum baleen_kind)9)
#include "wrong.h"
