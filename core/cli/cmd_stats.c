/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen stats`: the counters since the start, with shares where a share says more. Runs in the
 * user's process. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"

#include <stdio.h>

static void stats_line(const char *name, double n, double total)
{
	char text[CLI_TEXT_MAX];
	printf("  %-24.60s %14s", name, cli_count(n, text));
	if (total > 0)
		printf("  %5.1f %%", 100 * n / total);
	putchar('\n');
}

/* Every number of an object; zeros only with `zeros`. */
static void stats_object(const char *title, const cJSON *o, double total, bool zeros)
{
	const cJSON *item;
	bool any = false;
	cJSON_ArrayForEach(item, o)
	{
		if (!cJSON_IsNumber(item) || (!zeros && item->valuedouble == 0))
			continue;
		if (!any)
			printf("\n%s\n", title);
		any = true;
		stats_line(item->string, item->valuedouble, total);
	}
}

static void stats_cache(const cJSON *o)
{
	char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
	double hit = cli_number(o, "hit"), miss = cli_number(o, "miss"),
	       stale = cli_number(o, "stale");
	double total = hit + miss + stale;

	printf("\ncache\n");
	stats_line("hit", hit, total);
	stats_line("miss", miss, total);
	stats_line("stale", stale, total);
	stats_line("joined in flight", cli_number(o, "joined"), 0);
	printf("  %-24s %14s  in %s of %s\n", "entries", cli_count(cli_number(o, "entries"), a),
	       cli_octets(cli_number(o, "used_octets"), b), cli_octets(cli_number(o, "octets"), c));
}

static void stats_plugins(const cJSON *o)
{
	const cJSON *plugin, *item;
	bool any = false;
	cJSON_ArrayForEach(plugin, o)
	{
		cJSON_ArrayForEach(item, plugin)
		{
			char name[96];
			if (!cJSON_IsNumber(item) || item->valuedouble == 0)
				continue;
			if (!any)
				printf("\nverdicts by plugin\n");
			any = true;
			snprintf(name, sizeof(name), "%.60s %.20s", plugin->string, item->string);
			stats_line(name, item->valuedouble, 0);
		}
	}
}

static void stats_print(const cJSON *o)
{
	const cJSON *queries = cJSON_GetObjectItemCaseSensitive(o, "queries");
	double total = cli_number(queries, "total");
	char text[CLI_TEXT_MAX];

	printf("queries %s since the start\n", cli_count(total, text));
	stats_line("udp", cli_number(queries, "udp"), total);
	stats_line("tcp", cli_number(queries, "tcp"), total);
	stats_object("verdicts", cJSON_GetObjectItemCaseSensitive(o, "verdicts"), total, true);
	stats_plugins(cJSON_GetObjectItemCaseSensitive(o, "plugins"));
	stats_object("hits by feed", cJSON_GetObjectItemCaseSensitive(o, "feeds"), 0, false);
	stats_object("queries by group", cJSON_GetObjectItemCaseSensitive(o, "groups"), total,
		     false);
	stats_cache(cJSON_GetObjectItemCaseSensitive(o, "cache"));
	stats_object("upstreams", cJSON_GetObjectItemCaseSensitive(o, "upstreams"), 0, true);
	stats_object("not served", cJSON_GetObjectItemCaseSensitive(o, "drops"), 0, false);
}

int cmd_stats(int argc, char **argv)
{
	struct cli_options o;
	cJSON *reply;
	int code = cli_options(argc, argv, "stats [-c FILE] [--json]", NULL, 0, 0, &o);
	if (code >= 0)
		return code;
	code = cli_ask(o.config, cli_request("stats"), &reply);
	if (code == CLI_FINE && o.json)
		cli_print_json(reply);
	else if (code == CLI_FINE)
		stats_print(reply);
	cJSON_Delete(reply);
	return code;
}
