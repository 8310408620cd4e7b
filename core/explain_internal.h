/* SPDX-License-Identifier: Apache-2.0 */
/* A rehearsal's state, shared by explain.c (which walks the query) and explain_result.c (which says
 * what came of it). Nobody else includes this. */
#ifndef BALEEN_CORE_EXPLAIN_INTERNAL_H
#define BALEEN_CORE_EXPLAIN_INTERNAL_H

#include "base/message.h"
#include "core/dns/answer_view.h"
#include "core/explain.h"
#include "core/query.h"
#include "core/worker.h"

#define EXPLAIN_STEPS_MAX (CONFIG_CHAIN_MAX * 8)

struct explain {
	struct generation *generation;
	const struct domset *set;
	uint64_t set_number;
	const char *state;
	struct worker worker;
	struct breadcrumb crumb;
	struct query *query;
	struct answer_view *view;
	uint8_t message[MESSAGE_SIZE_MAX];
	uint8_t reply[MESSAGE_SIZE_MAX];

	/* While one request is looked at. */
	struct explain_result *out;
};

/* A row of the steps; NULL when there are too many. The texts live as long as the result. */
struct explain_step *explain_result_step(struct explain_result *out, const char *stage,
					 const char *plugin, const char *outcome, const char *text);
/* The chain's trace: one step a hook. `context` is the rehearsal. */
void explain_result_hook(void *context, const char *instance, enum query_phase phase,
			 enum baleen_verdict verdict, bool monitor, bool skipped,
			 const struct baleen_why *why);
/* The filters that the group has switched off. */
void explain_result_off(struct explain *e);
/* Every rule and feed that has a say about the question, whoever decided. */
void explain_result_around(struct explain *e);
/* The decision, and what the client gets. */
void explain_result_conclude(struct explain *e);

#endif
