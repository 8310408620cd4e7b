/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An explanation as one screen of text for the help desk, and as JSON. Owns nothing. Invariant:
 * both show the same facts; the text leaves out what is empty, and the rules that cannot matter.
 */
#include "core/explain.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define PRINT_RULES_MAX 12 /* rules that did not match, shown before the one that did */

static const char *since_text(int64_t since_s, char out[32])
{
	time_t t = (time_t)since_s;
	struct tm tm;

	if (!since_s || !gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return out;
}

__attribute__((format(printf, 3, 4))) static void row(FILE *out, const char *key,
						      const char *format, ...)
{
	va_list ap;

	fprintf(out, "  %-9s ", key);
	va_start(ap, format);
	vfprintf(out, format, ap);
	va_end(ap);
	fputc('\n', out);
}

static void print_feed(const struct explain_result *r, FILE *out)
{
	char set[48] = "as on disk, not compiled yet";

	if (r->set_number)
		snprintf(set, sizeof(set), "in set %llu", (unsigned long long)r->set_number);
	row(out, "feed", "%s%s%s%s, %s", r->feed, r->category ? " (" : "",
	    r->category ? r->category : "", r->category ? ")" : "", set);
}

static void print_decision(const struct explain_result *r, FILE *out)
{
	char since[32];

	fprintf(out, "%s %s for %s: ", r->name, r->type, r->client);
	for (const char *p = r->word; *p; p++)
		fputc(toupper((unsigned char)*p), out);
	fputc('\n', out);
	row(out, "answer", "%s", r->answer);
	if (r->plugin)
		row(out, "by", "%s", r->plugin);
	if (r->rule)
		row(out, "rule", "%s  %s", r->rule, r->rule_text);
	if (r->feed)
		print_feed(r, out);
	if (r->match)
		row(out, "matched", "%s%s%s%s", r->match,
		    strcmp(r->hop, "question") == 0 ? "" : " as the answer's ",
		    strcmp(r->hop, "question") == 0 ? "" : r->hop,
		    r->match_exact ? " (this name alone)" : "");
	if (since_text(r->since_s, since))
		row(out, "listed", "since %s", since);
	if (r->text)
		row(out, "reason", "%s", r->text);
	row(out, "group", "%s (%s)", r->group, r->group_why);
	for (const char **w = r->would; *w; w++)
		row(out, "monitored", "%s", *w);
}

static void print_steps(const struct explain_result *r, FILE *out)
{
	if (!r->step_count)
		return;
	fputs("\nsteps\n", out);
	for (size_t i = 0; i < r->step_count; i++) {
		const struct explain_step *s = &r->steps[i];
		fprintf(out, "%s %-8s  %-12s  %s%s%s%s\n", s->decided ? ">" : " ", s->stage,
			s->plugin[0] ? s->plugin : "(core)", s->outcome,
			s->monitor ? " (only recorded)" : "", *s->text ? ": " : "", s->text);
	}
}

/* The last few rules before the first that matches, and that one. */
static void print_rules(const struct explain_result *r, FILE *out)
{
	size_t end = 0;

	if (!r->rule_count)
		return;
	while (end < r->rule_count && !r->rules[end].matches)
		end++;
	if (end < r->rule_count)
		end++;
	size_t from = end > PRINT_RULES_MAX ? end - PRINT_RULES_MAX : 0;
	fputs("\nrules over the question, in order\n", out);
	if (from)
		fprintf(out, "  %zu before these do not match\n", from);
	for (size_t i = from; i < end; i++) {
		const struct explain_rule *rule = &r->rules[i];
		fprintf(out, "%s %s  %s\n      %s%s%s\n", rule->matches ? ">" : " ", rule->place,
			rule->text, rule->matches ? "matches" : "does not match",
			*rule->why ? ": " : "", rule->why);
	}
	if (end < r->rule_count)
		fprintf(out, "  %zu behind these are not reached\n", r->rule_count - end);
}

static void print_feeds(const struct explain_result *r, FILE *out)
{
	char since[32];

	if (!r->feed_count)
		return;
	fputs("\nfeeds that hold the name\n", out);
	for (size_t i = 0; i < r->feed_count; i++) {
		const struct explain_feed *f = &r->feeds[i];
		const char *when = since_text(f->since_s, since);
		fprintf(out, "  %-16s  %s (%s)%s%s%s%s\n", f->name, f->match, f->how,
			f->threat ? ", threat" : "", f->shadow ? ", shadow: blocks nothing" : "",
			when ? ", since " : "", when ? when : "");
	}
}

void explain_print(const struct explain_result *r, FILE *out)
{
	print_decision(r, out);
	print_steps(r, out);
	print_rules(r, out);
	print_feeds(r, out);
}

/* ---- JSON ---- */

static void text_or_null(cJSON *object, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(object, key, text);
	else
		cJSON_AddNullToObject(object, key);
}

static void add_since(cJSON *object, int64_t since_s)
{
	char since[32];
	text_or_null(object, "since", since_text(since_s, since));
}

static void add_lists(cJSON *root, const struct explain_result *r)
{
	cJSON *steps = cJSON_AddArrayToObject(root, "steps");
	for (size_t i = 0; i < r->step_count; i++) {
		const struct explain_step *s = &r->steps[i];
		cJSON *o = cJSON_CreateObject();
		cJSON_AddItemToArray(steps, o);
		cJSON_AddStringToObject(o, "stage", s->stage);
		cJSON_AddStringToObject(o, "plugin", s->plugin);
		cJSON_AddStringToObject(o, "outcome", s->outcome);
		cJSON_AddBoolToObject(o, "monitor", s->monitor);
		cJSON_AddBoolToObject(o, "decided", s->decided);
		cJSON_AddStringToObject(o, "text", s->text);
	}
	cJSON *rules = cJSON_AddArrayToObject(root, "rules");
	for (size_t i = 0; i < r->rule_count; i++) {
		cJSON *o = cJSON_CreateObject();
		cJSON_AddItemToArray(rules, o);
		cJSON_AddStringToObject(o, "rule", r->rules[i].place);
		cJSON_AddStringToObject(o, "text", r->rules[i].text);
		cJSON_AddBoolToObject(o, "matches", r->rules[i].matches);
		cJSON_AddStringToObject(o, "why", r->rules[i].why);
	}
	cJSON *feeds = cJSON_AddArrayToObject(root, "feeds");
	for (size_t i = 0; i < r->feed_count; i++) {
		const struct explain_feed *f = &r->feeds[i];
		cJSON *o = cJSON_CreateObject();
		cJSON_AddItemToArray(feeds, o);
		cJSON_AddStringToObject(o, "feed", f->name);
		cJSON_AddStringToObject(o, "category", f->category);
		cJSON_AddStringToObject(o, "match", f->match);
		cJSON_AddStringToObject(o, "how", f->how);
		cJSON_AddStringToObject(o, "kind", f->threat ? "threat" : "blocklist");
		cJSON_AddStringToObject(o, "mode", f->shadow ? "shadow" : "enforce");
		add_since(o, f->since_s);
	}
	cJSON *would = cJSON_AddArrayToObject(root, "would");
	for (const char **w = r->would; *w; w++)
		cJSON_AddItemToArray(would, cJSON_CreateString(*w));
}

cJSON *explain_json(const struct explain_result *r)
{
	cJSON *root = cJSON_CreateObject();

	cJSON_AddStringToObject(root, "name", r->name);
	cJSON_AddStringToObject(root, "type", r->type);
	cJSON_AddStringToObject(root, "client", r->client);
	cJSON_AddStringToObject(root, "group", r->group);
	cJSON_AddStringToObject(root, "group_why", r->group_why);
	cJSON_AddStringToObject(root, "verdict", r->word);
	text_or_null(root, "plugin", r->plugin);
	text_or_null(root, "rule", r->rule);
	text_or_null(root, "rule_text", r->rule_text);
	cJSON_AddStringToObject(root, "hop", r->hop);
	text_or_null(root, "feed", r->feed);
	text_or_null(root, "category", r->category);
	text_or_null(root, "match", r->match);
	cJSON_AddBoolToObject(root, "exact", r->match_exact);
	add_since(root, r->since_s);
	cJSON_AddNumberToObject(root, "set", (double)r->set_number);
	text_or_null(root, "text", r->text);
	cJSON_AddStringToObject(root, "answer", r->answer);
	add_lists(root, r);
	return root;
}
