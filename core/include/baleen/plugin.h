/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baleen/plugin.h: everything a Baleen plugin needs, and all it may use.
 *
 * THE LIFE OF A QUERY
 *
 * A packet arrives at one of N worker processes. The core parses it; a malformed one is answered by
 * the core and no plugin ever sees it. The core knows the client's address (IPv4 as ::ffff:a.b.c.d)
 * and looks up its group. Then the chain runs, in the order of the configuration:
 *
 *     receive -> on_client -> on_query -> cache -> upstream -> on_answer -> send -> on_events
 *
 *   on_client   The header is well formed, client and group are known, the name has not been looked
 *               at. For limits by client. Worker process; must not block.
 *   on_query    The question is known. For filters by name and type. Worker; must not block.
 *   on_answer   There is an answer, from the cache or from upstream, never one that a plugin or the
 *               policy made. `call->answer` shows every CNAME hop and every address. Worker.
 *   on_events   Batches of finished queries, in the logger process. May block: DNS does not notice,
 *               and events that are lost meanwhile are counted.
 *
 * Each hook returns a verdict. PASS hands the query to the next plugin. The first other verdict
 * ends the phase, and the core acts on it: it builds block answers, adds EDE, honours monitor mode,
 * writes the event. A plugin decides; it never writes a packet. See the table at the verdicts for
 * what is legal where; an illegal verdict counts as FAIL, and so does ANSWER without an address,
 * and REWRITE or a CNAME form without a target.
 *
 * The cache holds only what upstream said. So on_query and on_answer run for every query, whatever
 * the cache does, and a plugin's verdict is never stored.
 *
 * ALLOW ends *filters* for this query, its CNAME targets and its answer. *Guards* always run.
 *
 * WHO OWNS WHAT
 *
 *   host        The core's; valid for the life of the process.
 *   query,      The core's; read-only; valid during the call.
 *   answer
 *   config      The plugin's options struct, filled by the core from YAML by the option rows;
 *               `configure` may add to it; immutable afterwards and shared by all workers. One for
 *               the base and one for each group that overrides options: `call->config` is the right
 *               one for the query's group.
 *   worker      `worker_size` zeroed octets per worker; the plugin's, single-threaded.
 *   slot        `slot_size` zeroed octets per query; the same for all hooks of one query.
 *   why         The core's; what the plugin writes there goes to event, explain and EDE. Strings in
 *               it must live until the hook's caller is done with the query: literals, config, or
 *               host->keep().
 *
 * No malloc in a hook: memory comes from the four places above. State that must hold over all
 * workers lives in host->region(): packets of one client reach every worker.
 *
 * One process has one thread: no locks are needed, except in shared regions, where plain atomics
 * do. A crash costs this worker, not the service; see on-failure in the configuration.
 *
 * Every instance in the configuration is loaded from a private copy of the file, so its static
 * variables are its own, and replacing the file on disk cannot hurt a running daemon: the next
 * reload takes the new one. A plugin is never unloaded from a process.
 *
 * THE SMALLEST PLUGIN
 *
 *   #include <baleen/plugin.h>
 *
 *   static enum baleen_verdict no_any(struct baleen_call *call)
 *   {
 *           call->why->text = "ANY is not answered here";
 *           return call->query->type == 255 ? BALEEN_REFUSE : BALEEN_PASS;
 *   }
 *   static const struct baleen_plugin plugin = {
 *           .size = sizeof(plugin), .major = BALEEN_PLUGIN_MAJOR, .minor = BALEEN_PLUGIN_MINOR,
 *           .name = "no-any", .version = "1", .summary = "Refuse queries of type ANY",
 *           .kind = BALEEN_GUARD, .on_query = no_any,
 *   };
 *   const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
 *   {
 *           return (void)host, &plugin;
 *   }
 *
 *   cc -shared -fPIC -fvisibility=hidden -o no-any.so no-any.c
 *
 * VERSIONS
 *
 * Both structs begin with their size, major and minor. A plugin loads if its major equals the
 * host's and its minor is not newer. Everything here is only ever appended to: the host copies as
 * much of the descriptor as the plugin has into a zeroed one, so what a plugin compiled against an
 * older minor lacks at its end counts as absent. The other structs begin with their size too: a
 * field that an older host does not fill lies at or behind it.
 *
 * A plugin is trusted code: it runs with the rights of the process that it is loaded into.
 */
#ifndef BALEEN_PLUGIN_H
#define BALEEN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BALEEN_PLUGIN_MAJOR 1
#define BALEEN_PLUGIN_MINOR 0

struct event_base; /* libevent's */

/*
 * Verdicts. Zero means pass, so that forgetting is harmless.
 *
 *              on_client  on_query  on_answer
 *   PASS           x         x          x      no opinion, go on
 *   ALLOW          -         x          x      end the filters for this query; guards go on
 *   BLOCK          x         x          x      block, in the form that `why` (or the default) says
 *   ANSWER         -         x          x      answer with the addresses in why->address
 *   REWRITE        -         x          -      ask for why->target instead, CNAME in front
 *   REFUSE         x         x          x      REFUSED
 *   DROP           x         x          x      no reply at all
 *   TRUNCATE       x         x          x      empty reply with TC: real clients return over TCP,
 *                                              where it means PASS
 *   WAIT           -         x          x      a ticket was taken with host->wait()
 *   FAIL           x         x          x      the plugin could not decide: on-failure applies
 */
enum baleen_verdict {
	BALEEN_PASS = 0,
	BALEEN_ALLOW = 1,
	BALEEN_BLOCK = 2,
	BALEEN_ANSWER = 3,
	BALEEN_REWRITE = 4,
	BALEEN_REFUSE = 5,
	BALEEN_DROP = 6,
	BALEEN_TRUNCATE = 7,
	BALEEN_WAIT = 8,
	BALEEN_FAIL = 9,
};
#define BALEEN_VERDICTS 10

enum baleen_kind {
	BALEEN_FILTER = 0, /* ends at ALLOW; a group may switch it `off` */
	BALEEN_GUARD = 1,  /* always runs: rate limits, rebinding, tunnelling */
	BALEEN_SINK = 2,   /* has on_events only */
};

enum baleen_needs {
	BALEEN_NEEDS_NETWORK = 1 << 0,	  /* may connect to where it likes from the workers */
	BALEEN_NEEDS_STATE_READ = 1 << 1, /* may read the state folder from the workers */
};

enum baleen_transport { BALEEN_UDP = 0, BALEEN_TCP = 1 };

/* The question. Names are wire format (RFC 1035 3.1), lower case, with the root label. */
struct baleen_query {
	uint32_t size;
	uint16_t type;	  /* QTYPE */
	uint16_t rrclass; /* QCLASS */
	const uint8_t *name;
	uint8_t name_length; /* octets, root label included */
	uint8_t name_labels; /* without the root label */
	uint8_t transport;   /* enum baleen_transport */
	uint8_t flags;	     /* BALEEN_QUERY_* */
	uint16_t id;
	uint16_t client_port;
	uint16_t udp_size; /* what the client said it takes: 512 without EDNS */
	uint16_t reserved;
	uint32_t group;	       /* number of the client's group, below host->group_count() */
	const uint8_t *client; /* 16 octets, IPv4 as ::ffff:a.b.c.d */
	int64_t monotonic_ms;  /* when the batch was read; for limits and time-outs */
	int64_t wall_us;       /* for logs and schedules only */
};

enum {
	BALEEN_QUERY_RD = 1 << 0,
	BALEEN_QUERY_CD = 1 << 1,
	BALEEN_QUERY_AD = 1 << 2,
	BALEEN_QUERY_DO = 1 << 3,
	BALEEN_QUERY_EDNS = 1 << 4,
};

/* One record of the answer section. */
struct baleen_record {
	uint16_t type;
	uint16_t rrclass;
	uint32_t ttl;	      /* seconds left */
	const uint8_t *owner; /* wire name, lower case */
	const uint8_t *rdata; /* as in the packet; names in it may be compressed, see `target` */
	uint16_t rdata_length;
	uint8_t owner_length;
	uint8_t target_length; /* 0: none */
	const uint8_t *target; /* CNAME, DNAME, HTTPS/SVCB TargetName: wire name, lower case */
};

struct baleen_answer {
	uint32_t size;
	uint16_t rcode; /* with the extended bits */
	uint8_t from_cache;
	uint8_t stale; /* RFC 8767 */
	uint16_t record_count;
	uint16_t message_length;
	const struct baleen_record *records; /* of the answer section, in order */
	const uint8_t *message;		     /* the whole message as upstream sent it */
};

/* Answer forms of a block: the policy's words. */
enum baleen_form {
	BALEEN_FORM_DEFAULT = 0, /* nxdomain */
	BALEEN_FORM_NXDOMAIN = 1,
	BALEEN_FORM_NODATA = 2,
	BALEEN_FORM_ZERO_IP = 3,
	BALEEN_FORM_CNAME = 4,	   /* to why->target */
	BALEEN_FORM_ADDRESSES = 5, /* why->address */
};

enum baleen_hop {
	BALEEN_HOP_QUESTION = 0,
	BALEEN_HOP_CNAME = 1,
	BALEEN_HOP_ADDRESS = 2,
	BALEEN_HOP_HINT = 3,
	BALEEN_HOP_PAYLOAD = 4,
};

#define BALEEN_NONE 0xffffffffu

/*
 * What a verdict rests on. Zeroed before each call, with `rule` and `feed` BALEEN_NONE. Fill what
 * you know; the core writes it into the event and shows it in explain.
 */
struct baleen_why {
	uint32_t size;
	uint32_t rule;	      /* policy rule number, from host->policy() */
	uint32_t feed;	      /* feed number, from a lookup */
	uint8_t hop;	      /* enum baleen_hop */
	uint8_t form;	      /* enum baleen_form, for BLOCK */
	uint16_t ede;	      /* RFC 8914 code; 0: 15 for BLOCK, 18 for REFUSE */
	uint32_t ttl;	      /* seconds, of a made answer; 0: 60 */
	uint8_t match_length; /* the entry that matched, wire name; 0: none */
	uint8_t target_length;
	uint8_t address_count;
	uint8_t exact; /* the match covers the asked name alone: NODATA (RFC 8020) */
	const uint8_t *match;
	const uint8_t *target;	/* REWRITE and FORM_CNAME, wire name */
	const uint8_t *address; /* 16 octets each, IPv4 mapped */
	const char *category;
	const char *text; /* EDE text and event; short, printable ASCII */
};

struct baleen_handle; /* one query, opaque; only for host functions, only during the call */

struct baleen_call {
	uint32_t size;
	bool dry_run; /* explain and check: spend no tokens, learn nothing, send nothing */
	uint8_t reserved[3];
	const struct baleen_query *query;
	const struct baleen_answer *answer; /* on_answer only, else NULL */
	struct baleen_handle *handle;
	const void *config;
	void *worker;
	void *slot;
	struct baleen_why *why;
	const struct baleen_host *host;
};

typedef enum baleen_verdict baleen_hook(struct baleen_call *call);

/* ---- events ---- */

/* Something a monitored rule or plugin would have done. */
struct baleen_would {
	const char *plugin;
	const char *rule; /* or NULL */
	uint8_t verdict;  /* enum baleen_verdict */
};

/* A finished query. Strings are the host's and NUL-terminated; names are wire format. */
struct baleen_event {
	uint32_t size;
	uint16_t id;
	uint16_t type;
	uint16_t rrclass;
	uint16_t rcode;
	int64_t wall_us; /* when the query came */
	uint32_t latency_us;
	uint16_t answer_size; /* octets sent; 0: no reply */
	uint16_t client_port;
	const uint8_t *client; /* 16 octets */
	const char *group;
	const uint8_t *name;
	uint8_t name_length;
	uint8_t transport;
	uint8_t hop;
	uint8_t worker;		  /* index */
	const char *verdict;	  /* allow, block, answer, rewrite, refuse, drop, truncate, error */
	const char *plugin;	  /* that decided, or NULL */
	const char *rule;	  /* "policies/staff.yaml:8", or NULL */
	const char *feed;	  /* that decided, or NULL */
	const char *const *feeds; /* all that hold the name, NULL-terminated, may be empty */
	const char *category;	  /* or NULL */
	const char *mode;	  /* enforce or monitor */
	const char *cache;	  /* hit, miss, stale, none */
	const char *upstream;	  /* endpoint, or NULL */
	const char *text;	  /* why->text, or NULL */
	const uint8_t *match;	  /* wire name, or NULL */
	const struct baleen_would *would;
	uint32_t would_count;
	uint32_t answer_count;
	const char *const *answers; /* "A 192.0.2.1", presentation format */
};

struct baleen_batch {
	uint32_t size;
	uint32_t count;
	const struct baleen_event *events;
	uint64_t lost; /* events lost since the last batch because a ring was full */
	const void *config;
	void *worker;
};

/* ---- options and metrics: rows ---- */

enum baleen_type {
	BALEEN_END = 0,
	BALEEN_BOOL,	 /* bool */
	BALEEN_INTEGER,	 /* int64_t; min..max */
	BALEEN_NUMBER,	 /* double; min..max */
	BALEEN_DURATION, /* uint64_t milliseconds; min..max in ms; "500ms", "10m" */
	BALEEN_SIZE,	 /* uint64_t octets; "64MiB" */
	BALEEN_STRING,	 /* const char * */
	BALEEN_CHOICE,	 /* int: index into `words` */
	BALEEN_OUTPUT,	 /* const char *: a path to write; "-" stays "-" */
	BALEEN_FILE,	 /* struct baleen_file: read with the configuration, sealed with it */
	BALEEN_STRINGS,	 /* struct baleen_strings */
	BALEEN_PREFIXES, /* struct baleen_prefixes */
	BALEEN_NAMES,	 /* struct baleen_names: host->name_in() */
};

struct baleen_file {
	const char *path;
	const uint8_t *data;
	size_t size;
};
struct baleen_strings {
	size_t count;
	const char *const *items;
};
struct baleen_prefix {
	uint8_t octets[16];
	uint8_t bits; /* of 128 */
};
struct baleen_prefixes {
	size_t count;
	const struct baleen_prefix *items;
};
struct baleen_names {
	size_t count;
	const uint8_t *const *items; /* wire names, lower case */
};

struct baleen_option {
	const char *name; /* as in YAML */
	enum baleen_type type;
	size_t offset;	     /* into the options struct */
	const char *initial; /* default, as it would be written; NULL: zero; "!" : must be given */
	double min, max;     /* INTEGER, NUMBER, DURATION, SIZE */
	const char *const *words; /* CHOICE: NULL-terminated */
	const char *help;	  /* one line */
};

enum baleen_metric_type { BALEEN_COUNTER = 0, BALEEN_GAUGE = 1 };

struct baleen_metric {
	/* [a-z][a-z0-9_]*. The row's index is its number. Shown on /metrics and by `baleen stats`
	 * as baleen_<plugin>_<name>{instance="..."}, with _total behind the name of a counter,
	 * summed over all workers. */
	const char *name;
	enum baleen_metric_type type;
	const char *help;
};

/* ---- the descriptor: what the plugin gives ---- */

struct baleen_host;

struct baleen_plugin {
	uint32_t size; /* sizeof(struct baleen_plugin) */
	uint16_t major, minor;
	const char *name; /* [a-z][a-z0-9-]*; the word in the configuration */
	const char *version;
	const char *summary; /* one line */
	enum baleen_kind kind;
	uint32_t needs; /* enum baleen_needs, ored */

	const struct baleen_option *options; /* ends with a BALEEN_END row; NULL: none */
	size_t config_size;		     /* of the options struct */
	const struct baleen_metric *metrics; /* ends with a NULL name; NULL: none */
	size_t worker_size;
	size_t slot_size;

	/* Template; once for the base and once per group that overrides. Check what spans options;
	 * build tables. On error write a sentence to `error` and return non-zero. */
	int (*configure)(const struct baleen_host *host, void *config, char *error,
			 size_t error_size);
	/* Each worker (sinks: the logger), before the first hook. */
	int (*start)(const struct baleen_host *host, const void *config, void *worker, char *error,
		     size_t error_size);
	void (*stop)(const struct baleen_host *host, const void *config, void *worker);

	baleen_hook *on_client;
	baleen_hook *on_query;
	baleen_hook *on_answer;
	/* 0; another value: the batch could not be written (counted as lost, shown in status). */
	int (*on_events)(const struct baleen_host *host, const struct baleen_batch *batch);
};

/* ---- the host: what the plugin gets ---- */

/* One feed that lists a name or an ancestor of it. */
struct baleen_match {
	uint32_t feed;
	uint8_t labels; /* of the listed name: the suffix of the asked name that matched */
	uint8_t exact;	/* the entry covers that name alone */
	uint8_t reserved[2];
};

enum baleen_feed_kind { BALEEN_FEED_BLOCKLIST = 0, BALEEN_FEED_THREAT = 1 };

struct baleen_feed {
	uint32_t size;
	const char *name;
	const char *category;	 /* "" : none */
	const char *threat_type; /* "" : none */
	uint8_t kind;		 /* enum baleen_feed_kind */
	uint8_t shadow;		 /* compiled and counted, but enforces nothing */
	uint8_t confidence;	 /* 0..100 */
	uint8_t reserved;
};

enum baleen_log_level { BALEEN_LOG_ERROR, BALEEN_LOG_WARN, BALEEN_LOG_INFO, BALEEN_LOG_DEBUG };

struct baleen_host {
	uint32_t size;
	uint16_t major, minor;

	/* Any time. printf-like; goes to the daemon's log with the plugin's name. */
	void (*log)(const struct baleen_host *host, int level, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

	/* Memory that lives as long as the generation; configure only. Zeroed. */
	void *(*alloc)(const struct baleen_host *host, size_t size);

	/* A named region of shared memory, the same for all workers and over reloads as long as the
	 * size is the same; zeroed when new, 64-aligned. Names are the instance's own. Do not trust
	 * what it holds: a worker may die in the middle of a write. configure and start. NULL: no
	 * room. */
	void *(*region)(const struct baleen_host *host, const char *name, size_t size);

	/* The event loop of this process: timers and descriptors of the plugin's own. start. */
	struct event_base *(*loop)(const struct baleen_host *host);

	/* Add to a metric (row number); set a gauge. start and hooks. */
	void (*count)(const struct baleen_host *host, uint32_t metric, uint64_t add);
	void (*gauge)(const struct baleen_host *host, uint32_t metric, int64_t value);

	/* The policy's outcome for the question (on_query) or for the answer's CNAME targets and
	 * addresses (on_answer). The question's is evaluated once a query and remembered. Fills
	 * `why`; return the verdict as it is, and the core gives the answer that the rule asks for.
	 */
	enum baleen_verdict (*policy)(struct baleen_call *call);

	/* Every subscribed feed that lists `name` (wire, lower case), shadow ones too, deepest
	 * match of each; returns how many there are, writes at most `max`. One lookup; the
	 * question's own is remembered. BALEEN_NONE as a count: the set is damaged, treat as FAIL
	 * (which is SERVFAIL then, whatever on-failure says: not to know is not "not listed").
	 */
	uint32_t (*lookup)(struct baleen_call *call, const uint8_t *name, uint8_t length,
			   struct baleen_match *out, uint32_t max);
	/* About a feed number; NULL if there is none. */
	const struct baleen_feed *(*feed)(const struct baleen_host *host, uint32_t number);

	uint32_t (*group_count)(const struct baleen_host *host);
	const char *(*group_name)(const struct baleen_host *host, uint32_t group);

	/* Block `name` and everything under it for `group` (BALEEN_NONE: all), for `ttl_s` seconds,
	 * over all workers. For detectors. `why` shows in events. 0, or -ENOSPC. */
	int (*block_for)(struct baleen_call *call, const uint8_t *name, uint8_t length,
			 uint32_t group, uint32_t ttl_s, const char *why);

	/* Take a ticket: the query sleeps until host->resume(ticket) or `timeout_ms` (then `late`
	 * applies). Return BALEEN_WAIT from the hook afterwards. The query goes on with the plugin
	 * behind this one; this hook is not called again. 0: no ticket to be had, which is always
	 * so in a dry run; return something else then. */
	uint64_t (*wait)(struct baleen_call *call, uint32_t timeout_ms, enum baleen_verdict late);
	/* Wake it with a verdict. `why` may be NULL; it is copied, but for `category`. Harmless
	 * when the query is gone or was resumed: returns false. */
	bool (*resume)(const struct baleen_host *host, uint64_t ticket, enum baleen_verdict verdict,
		       const struct baleen_why *why);

	/* Copy octets so that they live as long as the query. NULL: no room (1 KiB a query). */
	const void *(*keep)(struct baleen_call *call, const void *data, size_t size);

	/* Is `name` equal to or under one of `names`? */
	bool (*name_in)(const struct baleen_names *names, const uint8_t *name, uint8_t length);

	/* One event as the JSON object of the interface, without newline. Returns its length; more
	 * than `size` means it did not fit and nothing but the length is valid. Sinks. */
	size_t (*event_json)(const struct baleen_event *event, char *out, size_t size);

	/* The state folder, absolute. The daemon's processes stand in it, and a relative
	 * BALEEN_OUTPUT path is below it: just open it. */
	const char *(*state_folder)(const struct baleen_host *host);
};

/*
 * The one symbol a plugin exports. Return the descriptor (static), or NULL to refuse this host.
 * Check nothing: the core compares versions.
 */
#define BALEEN_PLUGIN_ENTRY "baleen_plugin_entry"
__attribute__((visibility("default"))) const struct baleen_plugin *
baleen_plugin_entry(const struct baleen_host *host);

/* Append-only, enforced: moving anything breaks the build. */
#if defined(__x86_64__) || defined(__aarch64__)
#ifdef __cplusplus
#define BALEEN_ASSERT_AT(type, member, at) static_assert(offsetof(type, member) == (at), #member)
#else
#define BALEEN_ASSERT_AT(type, member, at) _Static_assert(offsetof(type, member) == (at), #member)
#endif
BALEEN_ASSERT_AT(struct baleen_query, name, 8);
BALEEN_ASSERT_AT(struct baleen_query, group, 28);
BALEEN_ASSERT_AT(struct baleen_query, client, 32);
BALEEN_ASSERT_AT(struct baleen_query, wall_us, 48);
BALEEN_ASSERT_AT(struct baleen_call, query, 8);
BALEEN_ASSERT_AT(struct baleen_call, why, 56);
BALEEN_ASSERT_AT(struct baleen_call, host, 64);
BALEEN_ASSERT_AT(struct baleen_answer, records, 16);
BALEEN_ASSERT_AT(struct baleen_record, owner, 8);
BALEEN_ASSERT_AT(struct baleen_record, target, 32);
BALEEN_ASSERT_AT(struct baleen_why, match, 24);
BALEEN_ASSERT_AT(struct baleen_why, text, 56);
BALEEN_ASSERT_AT(struct baleen_option, help, 56);
BALEEN_ASSERT_AT(struct baleen_plugin, name, 8);
BALEEN_ASSERT_AT(struct baleen_plugin, options, 40);
BALEEN_ASSERT_AT(struct baleen_plugin, configure, 80);
BALEEN_ASSERT_AT(struct baleen_plugin, on_events, 128);
BALEEN_ASSERT_AT(struct baleen_host, log, 8);
BALEEN_ASSERT_AT(struct baleen_host, policy, 56);
BALEEN_ASSERT_AT(struct baleen_host, state_folder, 144);
#endif

#ifdef __cplusplus
}
#endif

#endif
