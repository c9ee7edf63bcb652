// SPDX-License-Identifier: GPL-2.0
/* Tables that give subflows a number, and their text.
 *
 *	table    = [ rule { ( ";" | newline ) rule } ]
 *	rule     = { selector } number
 *	selector = "id=" N            the local address, by its MPTCP id
 *	         | "remote-id=" N     the peer's address, by its MPTCP id
 *	         | end                the first: the local end, the second: the peer's
 *	end      = ( "*" | IPv4 | "[" IPv6 "]" ) [ ":" ( "*" | PORT ) ]
 *
 * All selectors of a rule must fit, and the first rule that fits counts:
 *
 *	id=1 30; id=2 100
 *	10.77.0.1:* 10.77.1.2:* 30; * 10.77.2.2 100; 1
 */
#include <linux/inet.h>
#include <linux/kernel.h>
#include <linux/parser.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include "sched_table.h"

static int parse_end(char *word, struct sched_end *end)
{
	const char *rest = word + 1;
	u16 port = 0;

	memset(end, 0, sizeof(*end));
	if (word[0] == '[') {
		if (!in6_pton(word + 1, -1, end->v6.s6_addr, ']', &rest) || *rest != ']')
			return -EINVAL;
		end->family = AF_INET6;
		rest++;
	} else if (word[0] != '*') {
		char *colon = strchrnul(word, ':');
		bool port_follows = *colon;

		*colon = '\0';
		if (!in4_pton(word, -1, (u8 *)&end->v4, -1, &rest) || *rest)
			return -EINVAL;
		if (port_follows)
			*colon = ':';
		end->family = AF_INET;
		rest = colon;
	}
	if (!*rest)
		return 0;
	if (*rest++ != ':')
		return -EINVAL;
	if (!strcmp(rest, "*"))
		return 0;
	if (kstrtou16(rest, 10, &port) || !port)
		return -EINVAL;
	end->port = htons(port);
	return 0;
}

static int parse_id(const char *text, s16 *id)
{
	u8 value;

	if (kstrtou8(text, 10, &value))
		return -EINVAL;
	*id = value;
	return 0;
}

static int parse_rule(char *text, struct sched_rule *rule, u32 max)
{
	struct sched_end *ends[] = { &rule->local, &rule->remote };
	char *word, *next;
	int err, nr_ends = 0;

	memset(rule, 0, sizeof(*rule));
	rule->id = -1;
	rule->remote_id = -1;

	for (word = strim(text); ; word = next) {
		next = word + strcspn(word, " \t");
		if (!*next)		/* the last word is the number */
			break;
		*next = '\0';
		next = skip_spaces(next + 1);

		if (str_has_prefix(word, "id="))
			err = parse_id(word + strlen("id="), &rule->id);
		else if (str_has_prefix(word, "remote-id="))
			err = parse_id(word + strlen("remote-id="), &rule->remote_id);
		else if (nr_ends < ARRAY_SIZE(ends))
			err = parse_end(word, ends[nr_ends++]);
		else
			err = -EINVAL;
		if (err)
			return err;
	}
	if (kstrtou32(word, 10, &rule->value) || rule->value > max)
		return -EINVAL;
	return 0;
}

struct sched_table *sched_table_parse(char *text, u32 max)
{
	struct sched_table *table;
	char *line;
	int err;

	table = kzalloc(struct_size(table, rules, SCHED_TABLE_RULES), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);

	while ((line = strsep(&text, ";\n"))) {
		if (!*strim(line))
			continue;
		err = -E2BIG;
		if (table->count == SCHED_TABLE_RULES)
			goto fail;
		table->count++;
		err = parse_rule(line, &table->rules[table->count - 1], max);
		if (err)
			goto fail;
	}
	if (table->count)
		return table;
	err = 0;
fail:
	kfree(table);
	return ERR_PTR(err);
}

static int print_end(const struct sched_end *end, char *text, size_t size)
{
	int len;

	if (end->family == AF_INET)
		len = scnprintf(text, size, "%pI4", &end->v4);
	else if (end->family == AF_INET6)
		len = scnprintf(text, size, "[%pI6c]", &end->v6);
	else
		len = scnprintf(text, size, "*");
	if (end->port)
		len += scnprintf(text + len, size - len, ":%u ", ntohs(end->port));
	else
		len += scnprintf(text + len, size - len, ":* ");
	return len;
}

int sched_table_print(const struct sched_table *table, char *text, size_t size)
{
	int i, len = 0;

	text[0] = '\0';
	for (i = 0; table && i < table->count; i++) {
		const struct sched_rule *rule = &table->rules[i];
		bool remote = rule->remote.family || rule->remote.port;

		if (i)
			len += scnprintf(text + len, size - len, "; ");
		if (rule->id >= 0)
			len += scnprintf(text + len, size - len, "id=%d ", rule->id);
		if (rule->remote_id >= 0)
			len += scnprintf(text + len, size - len, "remote-id=%d ",
					 rule->remote_id);
		if (remote || rule->local.family || rule->local.port)
			len += print_end(&rule->local, text + len, size - len);
		if (remote)
			len += print_end(&rule->remote, text + len, size - len);
		len += scnprintf(text + len, size - len, "%u", rule->value);
	}
	return len;
}

static bool end_fits(const struct sched_end *end, const struct sock *ssk,
		     __be16 port, __be32 v4, const struct in6_addr *v6)
{
	bool is_v6 = ssk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(v6);

	if (end->port && end->port != port)
		return false;
	switch (end->family) {
	case AF_INET:
		return !is_v6 && end->v4.s_addr == v4;
	case AF_INET6:
		return is_v6 && ipv6_addr_equal(&end->v6, v6);
	default:
		return true;
	}
}

static const struct in6_addr *local_v6(const struct sock *ssk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return &inet6_sk(ssk)->saddr;
#else
	return &in6addr_any;
#endif
}

static const struct in6_addr *remote_v6(const struct sock *ssk)
{
#if IS_ENABLED(CONFIG_IPV6)
	return &ssk->sk_v6_daddr;
#else
	return &in6addr_any;
#endif
}

static bool rule_fits(const struct sched_rule *rule, const struct mptcp_sock *msk,
		      const struct mptcp_subflow_context *subflow)
{
	const struct sock *ssk = mptcp_subflow_tcp_sock(subflow);
	const struct inet_sock *inet = inet_sk(ssk);
	bool v6 = ssk->sk_family == AF_INET6;

	/* On the wire the first subflow's address has id 0, whatever id its
	 * endpoint was given.
	 */
	if (rule->id >= 0 && rule->id != READ_ONCE(subflow->local_id) &&
	    (READ_ONCE(subflow->local_id) || rule->id != msk->mpc_endpoint_id))
		return false;
	if (rule->remote_id >= 0 && rule->remote_id != READ_ONCE(subflow->remote_id))
		return false;
	return end_fits(&rule->local, ssk, inet->inet_sport, inet->inet_saddr,
			v6 ? local_v6(ssk) : &in6addr_any) &&
	       end_fits(&rule->remote, ssk, inet->inet_dport, inet->inet_daddr,
			v6 ? remote_v6(ssk) : &in6addr_any);
}

u32 sched_table_find(const struct sched_table *table,
		     const struct mptcp_sock *msk,
		     const struct mptcp_subflow_context *subflow, u32 fallback)
{
	int i;

	for (i = 0; table && i < table->count; i++)
		if (rule_fits(&table->rules[i], msk, subflow))
			return table->rules[i].value;
	return fallback;
}
