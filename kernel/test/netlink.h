/* SPDX-License-Identifier: GPL-2.0 */
/* Just enough netlink: one request, one acknowledgement. */
#ifndef NETLINK_H
#define NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

struct request {
	union {
		struct nlmsghdr head;
		char bytes[2048];
	};
};

void request_begin(struct request *r, int type, int flags, const void *header, size_t len);
void request_raw(struct request *r, const void *data, size_t len);
void request_put(struct request *r, int type, const void *data, size_t len);
void request_u32(struct request *r, int type, uint32_t value);
size_t request_nest(struct request *r, int type);
void request_nest_end(struct request *r, size_t at);
/* 0 or a negative error number; the answer, if any, replaces the request. */
int request_send(struct request *r, int protocol);

#endif
