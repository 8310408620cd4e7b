/* SPDX-License-Identifier: Apache-2.0 */
/* It does not like its options. */
#define WRONG_FIELDS .on_query = pass, .configure = refuse_options
#include "wrong.h"
