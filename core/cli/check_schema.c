/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of baleen.yaml. Runs in the user's process. Invariant: it never refuses what the
 * loader takes; where it cannot say it exactly (names, sizes, times) it says "string".
 */
#include "core/cli/check_schema.h"

#include "core/chain/chain.h"
#include "core/chain/options.h"
#include "core/config.h"
#include "core/generation.h"

#include <string.h>

#define TEXT	 "{\"type\":\"string\"}"
#define TEXTS	 "{\"type\":\"array\",\"items\":" TEXT "}"
#define SIZE	 "{\"type\":[\"string\",\"integer\"],\"description\":\"64MiB, or octets\"}"
#define TIME	 "{\"type\":[\"string\",\"integer\"],\"description\":\"500ms, 2s, 10m, 1h, 1d\"}"
#define WORDS(w) "{\"enum\":[" w "]}"
#define CLOSED	 "\"type\":\"object\",\"additionalProperties\":false,\"properties\""

/* clang-format off */
static const char check_schema_frame[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"baleen.yaml\","
	CLOSED ":{"
	"\"listen\":{\"type\":\"array\",\"items\":{\"anyOf\":[" TEXT ",{" CLOSED ":{"
		"\"address\":" TEXT ",\"name\":" TEXT "},\"required\":[\"address\"]}]}},"
	"\"allow-clients\":" TEXTS ","
	"\"trusted\":" TEXTS ","
	"\"workers\":{\"anyOf\":[{\"const\":\"auto\"},{\"type\":\"integer\",\"minimum\":1,\"maximum\":32}]},"
	"\"upstreams\":{\"type\":\"object\",\"additionalProperties\":{" CLOSED ":{"
		"\"servers\":" TEXTS ",\"zones\":" TEXTS ","
		"\"strategy\":" WORDS("\"fastest\",\"ordered\",\"race\"") ",\"timeout\":" TIME "}}},"
	"\"cache\":{" CLOSED ":{\"size\":" SIZE ",\"min-ttl\":" TIME ",\"max-ttl\":" TIME ","
		"\"stale\":" TIME "}},"
	"\"plugins\":{\"type\":\"array\",\"items\":{\"anyOf\":[" TEXT "]}},"
	"\"hang-timeout\":" TIME ","
	"\"feeds\":{\"type\":\"array\",\"items\":{\"anyOf\":[" TEXT ",{" CLOSED ":{"
		"\"name\":" TEXT ",\"file\":" TEXT ",\"url\":" TEXT ",\"mirrors\":" TEXTS ","
		"\"format\":" TEXT ",\"match\":" WORDS("\"subtree\",\"exact\"") ","
		"\"kind\":" WORDS("\"blocklist\",\"threat\"") ","
		"\"mode\":" WORDS("\"enforce\",\"shadow\"") ","
		"\"category\":" TEXT ",\"threat-type\":" TEXT ","
		"\"confidence\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100},"
		"\"refresh\":" TIME ",\"max-size\":" SIZE ",\"ca-file\":" TEXT ",\"header-file\":" TEXT ","
		"\"allow-private\":{\"type\":\"boolean\"},"
		"\"column\":{\"type\":[\"string\",\"integer\"]},\"path\":" TEXT ","
		"\"url-host\":{\"type\":\"boolean\"},"
		"\"admission\":{" CLOSED ":{\"shrink\":{\"type\":\"number\"},\"grow\":{\"type\":\"number\"}}}},"
		"\"required\":[\"name\"]}]}},"
	"\"protected\":" TEXTS ","
	"\"policies\":" TEXT ",\"state\":" TEXT ",\"user\":" TEXT ",\"control\":" TEXT ","
	"\"plugin-folder\":" TEXT ","
	"\"admin\":{" CLOSED ":{\"listen\":" TEXT ",\"token-file\":" TEXT "}}"
	"}}";

/* What every entry of the chain takes (config_plugin_keys). */
static const char check_schema_common[] =
	"{\"name\":" TEXT ",\"mode\":" WORDS("\"enforce\",\"monitor\"") ","
	"\"on-failure\":" WORDS("\"open\",\"closed\"") ",\"max-crashes\":{\"type\":\"integer\"},"
	"\"within\":" TIME ",\"retry-after\":" TIME "}";
/* clang-format on */

/* {"ratelimit": {options}}, or with NULL any plugin with any options. */
static cJSON *check_schema_entry(const struct baleen_plugin *plugin)
{
	cJSON *entry = cJSON_CreateObject();
	cJSON_AddStringToObject(entry, "type", "object");
	if (!plugin) {
		cJSON_AddNumberToObject(entry, "maxProperties", 1);
		return entry;
	}
	cJSON_AddBoolToObject(entry, "additionalProperties", false);
	cJSON *options =
		cJSON_AddObjectToObject(cJSON_AddObjectToObject(entry, "properties"), plugin->name);
	cJSON_AddStringToObject(options, "description", plugin->summary ? plugin->summary : "");
	cJSON_AddStringToObject(options, "type", "object");
	cJSON_AddBoolToObject(options, "additionalProperties", false);
	cJSON *properties = options_schema(plugin), *common = cJSON_Parse(check_schema_common);
	while (common && common->child) {
		cJSON *item = cJSON_DetachItemViaPointer(common, common->child);
		cJSON_AddItemToObject(properties, item->string, item);
	}
	cJSON_Delete(common);
	cJSON_AddItemToObject(options, "properties", properties);
	return entry;
}

cJSON *check_schema(const struct generation *g)
{
	cJSON *schema = cJSON_Parse(check_schema_frame);
	cJSON *o = cJSON_GetObjectItem(cJSON_GetObjectItem(schema, "properties"), "plugins");
	cJSON *kinds = cJSON_GetObjectItem(cJSON_GetObjectItem(o, "items"), "anyOf");
	if (!kinds)
		return schema;
	for (size_t i = 0; g && i < chain_count(g->chain); i++)
		cJSON_AddItemToArray(kinds, check_schema_entry(chain_plugin(g->chain, i)));
	if (!g)
		cJSON_AddItemToArray(kinds, check_schema_entry(NULL));
	return schema;
}
