/* SPDX-License-Identifier: GPL-2.0 */
/* One MPTCP connection between device and proxy, with verified data each way. */
#ifndef FLOW_H
#define FLOW_H

#include "net.h"

struct flow {			/* what one side sends */
	uint64_t size, sent, got;
	unsigned int chunk;	/* bytes of a write */
	double every_ms;	/* time from one write to the next, 0: none */
	double next_ms;
	bool closed, ended;	/* we have shut it down, the reader has seen the end */
	double last_ms, gap_ms;	/* when the reader last got something; longest wait */
	double wait_from_ms;	/* gaps count from here on, 0: not at all */
};

struct connection {
	int fd[2];
	int listener;		/* stays open: later subflows knock there */
	struct flow from[2];
	bool plain;		/* TCP instead of MPTCP */
	const char *wrong;	/* what the receiver found amiss, or NULL */
};

double now_ms(void);
/* Listens, connects by path 0 and accepts; gives up after so long. */
bool connection_open(struct connection *c, int port, double limit_ms);
/* Moves data until the time comes, or both directions have ended. */
bool connection_run(struct connection *c, double until_ms);
void connection_close(struct connection *c);
bool connection_done(const struct connection *c);

#endif
