/* SPDX-License-Identifier: Apache-2.0 */
/* Built against an older minor version, in which on_answer did not exist yet. */
#define WRONG_SIZE   offsetof(struct baleen_plugin, on_answer)
#define WRONG_NAME   "older"
#define WRONG_FIELDS .on_query = pass, .on_answer = block
#include "wrong.h"
