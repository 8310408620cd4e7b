/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baleen.yaml as a struct: parsed through base/node.h from a `struct source`, checked, defaults
 * filled in. Knows nothing of plugins' options (they stay nodes, see core/chain/options.h) nor of
 * policies. Lives in its generation's arena; read-only once loaded.
 */
#ifndef BALEEN_CORE_CONFIG_H
#define BALEEN_CORE_CONFIG_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/name.h"
#include "base/node.h"
#include "base/source.h"
#include "feeds/feed.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_DEFAULT_PATH  "/etc/baleen/baleen.yaml"
#define CONFIG_LISTENERS_MAX 16
#define CONFIG_WORKERS_MAX   32
#define CONFIG_CHAIN_MAX     32
#define CONFIG_UPSTREAMS_MAX 64 /* groups */
#define CONFIG_SERVERS_MAX   16 /* a group */

struct config_listener {
	struct endpoint endpoint;
	const char *name; /* NULL: none */
	int line, column;
};

enum config_strategy { STRATEGY_FASTEST, STRATEGY_ORDERED, STRATEGY_RACE };

struct config_upstream {
	const char *name; /* "default" is index 0 */
	struct name *zones;
	size_t zone_count; /* 0 only for default */
	struct endpoint servers[CONFIG_SERVERS_MAX];
	size_t server_count;
	enum config_strategy strategy;
	uint32_t timeout_ms; /* of the whole try, default 2000 */
};

enum config_on_failure { ON_FAILURE_OPEN, ON_FAILURE_CLOSED };

/* One entry of the chain. */
struct config_plugin {
	const char *plugin;	    /* the word: "ratelimit", or a path ending in .so */
	const char *instance;	    /* `name:`, default the plugin's word */
	const struct node *options; /* the map without the common keys' meaning; may be NULL */
	bool monitor;		    /* mode: monitor */
	enum config_on_failure on_failure;
	uint32_t max_crashes;	 /* default 3 */
	uint64_t within_ms;	 /* default 10 m */
	uint64_t retry_after_ms; /* default 10 m */
	int line, column;
};

struct config {
	const char *path;   /* absolute */
	const char *folder; /* its dirname */
	bool checkable;	    /* feeds, chain and listeners are without error */

	struct config_listener listeners[CONFIG_LISTENERS_MAX];
	size_t listener_count;
	struct prefix *allow_clients;
	size_t allow_client_count;
	struct prefix *trusted;
	size_t trusted_count;
	unsigned workers; /* resolved: 1..CONFIG_WORKERS_MAX */

	struct config_upstream *upstreams; /* [0] is default */
	size_t upstream_count;

	uint64_t cache_bytes; /* default 64 MiB; 0: no cache */
	uint32_t min_ttl_s, max_ttl_s, stale_s;

	struct config_plugin chain[CONFIG_CHAIN_MAX];
	size_t chain_count;
	uint32_t hang_timeout_ms; /* default 1000 */

	struct feeds feeds;
	const char **protected_files; /* absolute */
	size_t protected_count;

	const char *policies; /* absolute folder, or NULL */
	const char *state;    /* absolute folder; default /var/lib/baleen */
	const char *user;     /* default "baleen" */
	bool user_given;
	const char *control; /* absolute path of the socket */

	bool admin_enabled;
	struct endpoint admin_listen;
	const char *admin_token; /* contents of token-file, trimmed; NULL: none */

	const char *plugin_folder; /* `plugin-folder:`; NULL: beside the program, else installed */
};

/* Keys that every chain entry takes, NULL-terminated: mode, on-failure, max-crashes, ... */
extern const char *const config_plugin_keys[];

/* 0, or -EINVAL with every error in `d`. `out` is complete only with 0; `checkable` says whether
 * policies can be checked against it all the same. */
int config_load(struct source *source, const char *path, struct arena *a, struct diags *d,
		struct config *out);

/* Find only `control:` and `state:` for a client command: tolerant of everything else. */
int config_find_paths(const char *path, char **control, char **state);

#endif
