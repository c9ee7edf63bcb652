/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NETEM_H
#define NETEM_H

/* One path as the kernel's netem emulates it, both ways the same. */
struct netem {
	double rate_mbps;	/* of IP packets */
	double delay_ms;	/* one way */
	unsigned int queue;	/* packets that may wait for the link */
	const char *cc;		/* congestion control */
	double warmup_s, seconds;
};

/* Prints "NETEM GOODPUT", payload of a bulk transfer down in Mbit/s; 0 if all
 * of it was right.
 */
int netem(const struct netem *n);

#endif
