// SPDX-License-Identifier: GPL-2.0
/* The first program of the guest: runs what the kernel's command line asks for
 * (given to us as environment), says RESULT and powers off.
 *
 *	test=soak first=N count=N seed=N
 *	test=schedulers [only=NAME]
 *	test=netem rate=MBPS delay=MS queue=PACKETS cc=NAME [warmup=S] [seconds=S]
 */
#include "net.h"
#include "netem.h"
#include "schedulers.h"
#include "soak.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : fallback;
}

static double real(const char *name, double fallback)
{
	const char *text = getenv(name);

	return text ? strtod(text, NULL) : fallback;
}

static int run_netem(void)
{
	struct netem n = {
		.rate_mbps = real("rate", 100),
		.delay_ms = real("delay", 10),
		.queue = number("queue", 1000),
		.cc = getenv("cc") ? getenv("cc") : "reno",
		.warmup_s = real("warmup", 2),
		.seconds = real("seconds", 10),
	};

	return netem(&n);
}

int main(void)
{
	const char *test = getenv("test");
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mount("proc", "/proc", "proc", 0, NULL))
		die("cannot mount /proc: %s", strerror(errno));
	if (test && !strcmp(test, "soak"))
		failed = soak(number("first", 0), number("count", 100), number("seed", 1));
	else if (test && !strcmp(test, "schedulers"))
		failed = schedulers(getenv("only"));
	else if (test && !strcmp(test, "netem"))
		failed = run_netem();
	else
		die("test=%s is neither soak nor schedulers nor netem", test ? test : "");
	printf("RESULT %s\n", failed ? "failed" : "passed");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
