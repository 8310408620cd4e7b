/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a newer minor version. */
#define WRONG_MINOR (BALEEN_PLUGIN_MINOR + 1)
#include "wrong.h"
