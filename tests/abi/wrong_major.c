/* SPDX-License-Identifier: Apache-2.0 */
/* Built for another major version. */
#define WRONG_MAJOR (BALEEN_PLUGIN_MAJOR + 1)
#include "wrong.h"
