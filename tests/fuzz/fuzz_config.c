/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as baleen.yaml: loaded whole and within bounds, or refused with errors. */
#include "core/config.h"

#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct diags d;
	static struct config c;
	struct source *source = sealed_source(sealed_path(), NULL, data, size);
	arena_init(&arena);
	diag_init(&d);
	int result = config_load(source, sealed_path(), &arena, &d, &c);
	sealed_check(&d, result);
	if (result == 0 &&
	    (c.listener_count < 1 || c.workers < 1 || c.workers > CONFIG_WORKERS_MAX ||
	     c.upstream_count < 1 || !c.state || !c.control || c.hang_timeout_ms < 100))
		abort();
	source_free(source);
	arena_fini(&arena);
	diag_fini(&d);
	return 0;
}
