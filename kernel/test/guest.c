// SPDX-License-Identifier: GPL-2.0
/* The first program of the guest: runs what the kernel's command line asks for
 * (given to us as environment), says RESULT and powers off.
 *
 *	test=soak first=N count=N seed=N
 *	test=schedulers [only=NAME]
 */
#include "net.h"
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
	else
		die("test=%s is neither soak nor schedulers", test ? test : "");
	printf("RESULT %s\n", failed ? "failed" : "passed");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
