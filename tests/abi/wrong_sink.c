/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that wants to judge queries. */
#define WRONG_KIND BALEEN_SINK
#include "wrong.h"
