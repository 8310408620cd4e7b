/* SPDX-License-Identifier: Apache-2.0 */
/* Its name is no word. */
#define WRONG_NAME "Not A Word"
#include "wrong.h"
