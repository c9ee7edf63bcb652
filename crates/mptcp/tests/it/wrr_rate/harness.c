/* Feeds the rules of bpf/wrr_rate.h from standard input: a rule and its numbers a
 * line, the results a line. mod.rs builds and drives it.
 */
#include <inttypes.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../../../bpf/wrr_rate.h"

typedef unsigned long long u64;

static int answer(const char *rule)
{
	u64 a, b, c;

	if (!strcmp(rule, "step")) {
		struct wrr_search s;
		struct wrr_sight at;
		u64 rate, good, hold, carried, now, since, shows;
		unsigned int seen, queue_us;

		if (scanf("%llu %llu %llu %u %llu %u %llu %llu %llu", &rate, &good,
			  &hold, &seen, &carried, &queue_us, &now, &since, &shows) != 9)
			return 1;
		s = (struct wrr_search){ .rate = rate, .good = good, .hold = hold };
		at = (struct wrr_sight){ .carried = carried, .now = now, .since = since,
					 .shows = shows, .queue_us = queue_us };
		wrr_step(&s, seen, &at);
		printf("%llu %llu %llu\n", (u64)s.rate, (u64)s.good, (u64)s.hold);
		return 0;
	}
	if (!strcmp(rule, "owed")) {
		struct wrr_debt d;
		u64 rate, due;
		unsigned int owed;

		if (scanf("%u %llu %llu %u %u %u", &owed, &rate, &due, &d.carried,
			  &d.slowest_us, &d.idle) != 6)
			return 1;
		d.rate = rate;
		d.due = due;
		printf("%u\n", (unsigned int)wrr_owed((__s32)owed, &d));
		return 0;
	}
	if (scanf("%llu %llu %llu", &a, &b, &c) != 3)
		return 1;
	if (!strcmp(rule, "unit"))
		printf("%llu\n", (u64)wrr_unit(a, b));
	else if (!strcmp(rule, "share"))
		printf("%llu\n", (u64)wrr_share(a, b));
	else if (!strcmp(rule, "pay"))	/* debts are 32 bits with a sign */
		printf("%llu\n", (u64)wrr_pay(a, (__s32)b, c));
	else if (!strcmp(rule, "wait"))
		printf("%llu\n", (u64)wrr_wait(a, (__s32)b, c));
	else if (!strcmp(rule, "stretch"))
		printf("%u\n", wrr_stretch(a, b));
	else if (!strcmp(rule, "window"))
		printf("%u\n", wrr_window(a, b, c, false));
	else if (!strcmp(rule, "window-late"))
		printf("%u\n", wrr_window(a, b, c, true));
	else if (!strcmp(rule, "late"))
		printf("%u\n", wrr_late(a, b, c));
	else if (!strcmp(rule, "first"))
		printf("%llu\n", (u64)wrr_first(a, b));
	else if (!strcmp(rule, "burst"))
		printf("%u\n", wrr_burst(a, b));
	else
		return 1;
	return 0;
}

int main(void)
{
	char rule[16];

	while (scanf("%15s", rule) == 1) {
		if (answer(rule))
			return 1;
		fflush(stdout);
	}
	return 0;
}
