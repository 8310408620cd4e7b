/* SPDX-License-Identifier: Apache-2.0 */
/* It forgot to say how large its descriptor is. */
#define WRONG_SIZE 12
#include "wrong.h"
