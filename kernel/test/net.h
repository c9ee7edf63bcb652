/* SPDX-License-Identifier: GPL-2.0 */
/* Two network namespaces, a device and a proxy, joined by up to eight paths. */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stdint.h>

#define PATHS 8
#define PROXY_ADDRESS "10.9.0.1"

enum side { PROXY, DEVICE };

struct link {
	double rate_mbps, delay_ms, loss;	/* loss: 0 to 1, each way */
	unsigned int queue;			/* packets */
};

/* All of these end the program with a message when the kernel refuses. */
void net_begin(int paths, const struct link *links, uint32_t seed);
void net_end(void);
void net_enter(enum side side);
void net_shape(int path, const struct link *link);	/* both directions */
void net_carrier(int path, bool up);			/* the device sees it go */
void net_join(int path);				/* offer it to MPTCP */
void net_leave(int path);
void net_backup(int path, bool backup);
void net_sysctl(const char *name, const char *value);	/* where we are */
bool net_sysctl_refused(const char *name, const char *value);
uint64_t net_sent_bytes(enum side side, int path);

void die(const char *what, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
