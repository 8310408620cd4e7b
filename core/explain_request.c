/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for an explanation as JSON, from the control socket or the command line, checked field
 * by field, and the reply. Throw-away child of the template, or the user's process. Owns nothing.
 * Invariant: every field is bounded and of its type, or the reply says which is not.
 */
#include "core/explain.h"

#include "base/message_text.h"
#include "policies/policy_when.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_ANSWERS_MAX 64

struct asked {
	struct explain_request request;
	const char *answers[REQUEST_ANSWERS_MAX + 1];
};

static const char *text_of(const cJSON *request, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, key));
}

/* False, after a line about what was asked. */
static bool refuse(char error[EXPLAIN_ERROR_MAX], const char *word, const char *why)
{
	snprintf(error, EXPLAIN_ERROR_MAX, "\"%s\" is %s", word ? word : "", why);
	return false;
}

static bool read_who(const cJSON *request, struct asked *a, char error[EXPLAIN_ERROR_MAX])
{
	const char *client = text_of(request, "client");
	const char *transport = text_of(request, "transport");

	if (addr_parse(client ? client : "127.0.0.1", &a->request.client) < 0)
		return refuse(error, client, "no address (expected 192.0.2.1 or 2001:db8::1)");
	if (transport && strcmp(transport, "udp") != 0 && strcmp(transport, "tcp") != 0)
		return refuse(error, transport, "no transport (expected udp or tcp)");
	a->request.transport = transport && strcmp(transport, "tcp") == 0 ? BALEEN_TCP : BALEEN_UDP;
	a->request.listener = text_of(request, "listener");
	return true;
}

static bool read_what(const cJSON *request, struct asked *a, char error[EXPLAIN_ERROR_MAX])
{
	const char *name = text_of(request, "name");
	const char *type = text_of(request, "type");
	const cJSON *at = cJSON_GetObjectItemCaseSensitive(request, "at");

	if (!name || name_from_unicode(name, strlen(name), &a->request.name) < 0)
		return refuse(error, name, "no domain name");
	a->request.type = TYPE_A;
	if (type && message_type_parse(type, strlen(type), &a->request.type) < 0)
		return refuse(error, type, "no record type (expected A, HTTPS, TYPE65280, ...)");
	a->request.has_time = at && !cJSON_IsNull(at);
	if (at && cJSON_IsNumber(at) && at->valuedouble >= 0 && at->valuedouble < 1e11)
		a->request.wall_s = (int64_t)at->valuedouble;
	else if (a->request.has_time &&
		 !(cJSON_IsString(at) &&
		   policy_time_parse(at->valuestring, false, &a->request.wall_s) == 0))
		return refuse(error, cJSON_IsString(at) ? at->valuestring : "at",
			      "no time (expected 2026-03-02T10:00:00+01:00)");
	return true;
}

static bool read_answers(const cJSON *request, struct asked *a, char error[EXPLAIN_ERROR_MAX])
{
	const cJSON *answers = cJSON_GetObjectItemCaseSensitive(request, "answers");
	const cJSON *item;
	size_t n = 0;

	if (answers && !cJSON_IsNull(answers) && !cJSON_IsArray(answers))
		return refuse(error, "answers", "no list of records");
	cJSON_ArrayForEach(item, answers)
	{
		if (!cJSON_IsString(item) || n == REQUEST_ANSWERS_MAX)
			return refuse(error, "answers", "no list of at most 64 records");
		a->answers[n++] = item->valuestring;
	}
	a->request.answers = a->answers;
	return true;
}

static cJSON *failed(const char *error)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON_AddBoolToObject(reply, "ok", false);
	cJSON_AddStringToObject(reply, "error", error);
	return reply;
}

static void add_screen(cJSON *reply, const struct explain_result *result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	explain_print(result, out);
	if (fclose(out) == 0)
		cJSON_AddStringToObject(reply, "screen", text);
	free(text);
}

cJSON *explain_reply(struct explain *e, const cJSON *request)
{
	struct asked a = {0};
	struct explain_result result;
	char error[EXPLAIN_ERROR_MAX] = "";
	cJSON *reply;

	if (!read_what(request, &a, error) || !read_who(request, &a, error) ||
	    !read_answers(request, &a, error))
		return failed(error);
	if (explain_decide(e, &a.request, &result, error) < 0) {
		reply = failed(error);
	} else {
		reply = explain_json(&result);
		cJSON_AddBoolToObject(reply, "ok", true);
		add_screen(reply, &result);
	}
	explain_fini(&result);
	return reply;
}
