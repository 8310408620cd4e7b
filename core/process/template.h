/* SPDX-License-Identifier: Apache-2.0 */
/* The template: one per generation, exec'd afresh. Loads the snapshot, forks and re-forks the
 * processes of its generation, and leaves when they have drained. */
#ifndef BALEEN_CORE_PROCESS_TEMPLATE_H
#define BALEEN_CORE_PROCESS_TEMPLATE_H

/* What main calls for the internal argument; `argument` is the handover's descriptor. */
int template_run(const char *argument);

#endif
