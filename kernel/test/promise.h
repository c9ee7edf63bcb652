/* SPDX-License-Identifier: GPL-2.0 */
/* How a scheduler's promise is held against what went over the paths. */
#ifndef PROMISE_H
#define PROMISE_H

#include "flow.h"

/* What is looked at from here on. */
void promise(const char *of);
/* Says whether it is right; promises_broken() counts those that are not. */
void check(bool right, const char *what, ...) __attribute__((format(printf, 2, 3)));
int promises_broken(void);

/* Sets it at both ends. */
void both(const char *key, const char *value);

/* A bulk transfer down over all paths, as wide as buffers allow. Settings and
 * other transfers go between begin() and start().
 */
void begin(struct connection *c, const char *scheduler, int paths,
	   const struct link *links);
void start(struct connection *c);
void end(struct connection *c);

/* IP and Ethernet bytes that went down each path in so long. */
void measure(struct connection *c, int paths, double ms, double *bytes);
/* Are they in the ratio of the weights, to 1 %? */
void check_split(const double *bytes, const double *weights, int paths,
		 const char *what);

#endif
