/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file's octets: node_parse and the typed reads, on whatever tree comes out. An
 * error is told; a tree is walked whole. */
#include "base/node.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH_MAX 64

static void read_every_way(const struct node *n, struct diags *d)
{
	static const char *const words[] = {"one", "two", NULL};
	const char *text;
	bool flag;
	int64_t integer;
	double number;
	uint64_t amount;
	int choice;
	struct addr address;
	struct prefix prefix;
	struct endpoint endpoint;

	node_text(n, d, &text);
	node_bool(n, d, &flag);
	node_integer(n, d, -5, 5, &integer);
	node_number(n, d, -5, 5, &number);
	node_size(n, d, &amount);
	node_duration(n, d, &amount);
	node_choice(n, d, words, &choice);
	node_address(n, d, &address);
	node_prefix(n, d, &prefix);
	node_endpoint(n, d, 53, &endpoint);
	if (n->kind == NODE_MAP)
		node_check_keys(n, words, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct diags diags;
	struct node *root;
	const struct node *stack[DEPTH_MAX];
	unsigned depth = 0;

	arena_init(&arena);
	diag_init(&diags);
	int result = node_parse("fuzz.yaml", (const char *)data, size, &arena, &diags, &root);
	if ((result == 0) != (diags.errors == 0))
		abort();
	if (result == 0 && !root)
		abort();
	for (const struct node *n = root; n;) {
		read_every_way(n, &diags);
		if (n->kind != NODE_SCALAR && n->children) {
			if (depth == DEPTH_MAX)
				abort();
			stack[depth++] = n;
			n = n->children;
			continue;
		}
		while (!n->next && depth)
			n = stack[--depth];
		n = depth ? n->next : NULL;
	}
	diag_fini(&diags);
	arena_fini(&arena);
	return 0;
}
