/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a folder of policies, and what can be asked of them besides a verdict. The loader builds,
 * the arena owns, every process reads. Invariant: group 0 is `default`, and `extends` has been
 * followed to its end, without circles, before anybody asks.
 */
#include "policies/policy_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POLICY_NAME_MAX 63

static bool policy_name_is_valid(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
	return n > 0 && n <= POLICY_NAME_MAX && name[n] == '\0' && !strchr("_.-", name[0]);
}

/* The path as events show it: without the configuration's folder. */
static const char *policy_short_path(const struct policy_loader *l, const char *path)
{
	const char *folder = l->context->config_folder;
	size_t n = folder ? strlen(folder) : 0;
	if (n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/')
		return path + n + 1;
	return path;
}

/* ---- reading the files ---- */

/* The group's name: `group:`, else the file's. */
static const char *policy_name_of(struct policy_loader *l, const struct node *root,
				  const char *file_name)
{
	const struct node *n = node_get(root, "group");
	const char *name = arena_strndup(l->arena, file_name, strlen(file_name) - strlen(".yaml"));
	node_text(n, l->d, &name);
	if (!policy_name_is_valid(name)) {
		node_error(n ? n : root, l->d,
			   "\"%s\" is no name for a group (expected letters, digits, . _ -)", name);
		return NULL;
	}
	return name;
}

static void policy_read_file(struct policy_loader *l, const char *folder, const char *file_name)
{
	struct policy *p = l->policy;
	const char *path = arena_printf(l->arena, "%s/%s", folder, file_name);
	struct source_file file;
	struct node *root = NULL;
	int result = source_read(l->source, path, &file);
	if (result < 0) {
		diag_error(l->d, path, 0, 0, "cannot be read: %s", strerror(-result));
		return;
	}
	if (node_parse(path, (const char *)file.data, file.size, l->arena, l->d, &root) < 0 &&
	    !root)
		return;
	if (root->kind != NODE_MAP) {
		node_error(root, l->d, "a policy is a map (group: name)");
		return;
	}
	const char *name = policy_name_of(l, root, file_name);
	if (!name)
		return;
	struct policy_group *g = &p->groups[p->group_count];
	if (strcmp(name, "default") == 0)
		g = &p->groups[POLICY_GROUP_DEFAULT];
	const struct policy_group *same = NULL;
	for (size_t i = 0; i < p->group_count; i++)
		if (p->groups[i].root && strcmp(p->groups[i].name, name) == 0)
			same = &p->groups[i];
	if (same) {
		const struct node *n = node_get(root, "group");
		node_error(n ? n : root, l->d, "group \"%s\" is defined already (%s)", name,
			   same->file);
		return;
	}
	g->name = name;
	g->file = policy_short_path(l, path);
	g->root = root;
	if (g == &p->groups[p->group_count])
		g->number = (uint32_t)p->group_count++;
}

/* A .yml would be left out in silence. */
static void policy_refuse_yml(struct policy_loader *l, const char *folder)
{
	char **names;
	size_t count;
	if (source_list(l->source, folder, ".yml", &names, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		diag_error(l->d, arena_printf(l->arena, "%s/%s", folder, names[i]), 0, 0,
			   "policies are named *.yaml (rename it, or it is not read)");
	source_list_free(names, count);
}

static void policy_read_folder(struct policy_loader *l, const char *folder)
{
	char **names = NULL;
	size_t count = 0;
	size_t length = folder ? strlen(folder) : 0;
	int result = 0;
	while (length > 1 && folder[length - 1] == '/')
		length--;
	char *trimmed = folder ? arena_strndup(l->arena, folder, length) : NULL;
	if (folder)
		result = source_list(l->source, trimmed, ".yaml", &names, &count);
	if (result < 0)
		diag_error(l->d, trimmed, 0, 0, "the folder of policies cannot be read: %s",
			   strerror(-result));
	if (count >= POLICY_GROUPS_MAX) {
		diag_error(l->d, trimmed, 0, 0, "too many policies (at most %d)",
			   POLICY_GROUPS_MAX - 1);
		count = 0;
	}
	l->policy->groups = arena_alloc(l->arena, (count + 1) * sizeof(*l->policy->groups));
	l->policy->groups[0].name = "default";
	l->policy->group_count = 1;
	for (size_t i = 0; i < count; i++)
		policy_read_file(l, trimmed, names[i]);
	if (folder && result == 0) {
		source_list_free(names, count);
		policy_refuse_yml(l, trimmed);
	}
}

/* ---- extends ---- */

static struct policy_group *policy_group_named(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->group_count; i++)
		if (strcmp(p->groups[i].name, name) == 0)
			return &p->groups[i];
	return NULL;
}

static struct policy_group *policy_extended(struct policy_loader *l, const struct policy_group *g)
{
	const struct policy *p = l->policy;
	const char *name;
	if (!g->extends || !node_text(g->extends, l->d, &name))
		return NULL;
	struct policy_group *found = policy_group_named(p, name);
	if (found)
		return found;
	const char **names = arena_alloc(l->arena, (p->group_count + 1) * sizeof(*names));
	for (size_t i = 0; i < p->group_count; i++)
		names[i] = p->groups[i].name;
	const char *near = node_nearest(name, names);
	if (near)
		node_error(g->extends, l->d, "there is no group \"%s\" (did you mean \"%s\"?)",
			   name, near);
	else
		node_error(g->extends, l->d, "there is no group \"%s\"", name);
	return NULL;
}

static void policy_follow_extends(struct policy_loader *l)
{
	struct policy *p = l->policy;
	struct policy_group **next =
		arena_alloc(l->arena, p->group_count * sizeof(struct policy_group *));
	for (size_t i = 0; i < p->group_count; i++)
		next[i] = policy_extended(l, &p->groups[i]);
	for (size_t i = 0; i < p->group_count; i++) {
		struct policy_group *g = &p->groups[i];
		const struct policy_group *at = g;
		while (at) {
			if (g->order_count == POLICY_EXTENDS_MAX) {
				node_error(g->extends, l->d,
					   "too long a line of extends (at most "
					   "%d groups)",
					   POLICY_EXTENDS_MAX);
				break;
			}
			g->order[g->order_count++] = at;
			at = next[at->number];
			for (size_t k = 0; at && k < g->order_count; k++)
				if (g->order[k] == at) {
					node_error(g->extends, l->d,
						   "extends goes in a circle: \"%s\" comes back to "
						   "\"%s\"",
						   g->name, at->name);
					at = NULL;
				}
		}
	}
}

/* ---- all of it ---- */

int policy_load(struct source *source, const char *folder, const struct policy_context *context,
		struct arena *a, struct diags *d, struct policy **out)
{
	size_t errors = d->errors;
	struct policy *p = arena_alloc(a, sizeof(*p));
	struct policy_loader l = {.source = source,
				  .context = context,
				  .arena = a,
				  .d = d,
				  .policy = p,
				  .zones = {.source = source, .arena = a}};
	p->feeds = context->feeds;
	policy_read_folder(&l, folder);
	for (size_t i = 0; i < p->group_count; i++) {
		if (p->groups[i].root)
			policy_parse_group(&l, &p->groups[i]);
		else
			policy_built_in(&l, &p->groups[i]);
	}
	policy_build_groups(&l);
	policy_follow_extends(&l);
	if (d->errors > errors)
		return -EINVAL;
	policy_compile(&l);
	*out = p;
	return 0;
}

size_t policy_group_count(const struct policy *p)
{
	return p->group_count;
}

const char *policy_group_name(const struct policy *p, uint32_t group)
{
	return p->groups[group].name;
}

const char *policy_group_file(const struct policy *p, uint32_t group)
{
	return p->groups[group].file;
}

uint32_t policy_group_find(const struct policy *p, const char *name)
{
	const struct policy_group *g = policy_group_named(p, name);
	return g ? g->number : UINT32_MAX;
}

const struct node *policy_group_options(const struct policy *p, uint32_t group,
					const char *instance, bool *off)
{
	const struct node *n = node_get(node_get(p->groups[group].root, "plugins"), instance);
	*off = n && n->kind == NODE_SCALAR && strcmp(n->text, "off") == 0;
	return n && n->kind == NODE_MAP ? n : NULL;
}

size_t policy_rule_count(const struct policy *p)
{
	return p->place_count;
}

const struct policy_rule_place *policy_rule_place(const struct policy *p, uint32_t rule)
{
	return &p->places[rule];
}

size_t policy_test_count(const struct policy *p)
{
	return p->test_count;
}

const struct policy_test *policy_test(const struct policy *p, size_t index)
{
	return &p->tests[index];
}
