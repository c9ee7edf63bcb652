// SPDX-License-Identifier: GPL-2.0
#include "netlink.h"
#include "net.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void request_raw(struct request *r, const void *data, size_t len)
{
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	if (at + NLMSG_ALIGN(len) > sizeof(*r))
		die("a netlink request is too long");
	memset(r->bytes + at, 0, NLMSG_ALIGN(len));
	if (data)
		memcpy(r->bytes + at, data, len);
	r->head.nlmsg_len = at + len;
}

void request_begin(struct request *r, int type, int flags, const void *header, size_t len)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = NLMSG_HDRLEN;
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	request_raw(r, header, len);
}

void request_put(struct request *r, int type, const void *data, size_t len)
{
	struct nlattr attr = { .nla_len = NLA_HDRLEN + len, .nla_type = type };

	request_raw(r, &attr, sizeof(attr));
	request_raw(r, data, len);
}

void request_u32(struct request *r, int type, uint32_t value)
{
	request_put(r, type, &value, sizeof(value));
}

size_t request_nest(struct request *r, int type)
{
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	request_put(r, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void request_nest_end(struct request *r, size_t at)
{
	((struct nlattr *)(r->bytes + at))->nla_len = NLMSG_ALIGN(r->head.nlmsg_len) - at;
}

int request_send(struct request *r, int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), err = 0;
	struct nlmsghdr *m;
	char answer[4096];
	ssize_t n;

	if (fd < 0 || send(fd, r, r->head.nlmsg_len, 0) < 0)
		die("netlink %d: %s", protocol, strerror(errno));
	for (;;) {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0)
			die("netlink %d: no answer: %s", protocol, strerror(errno));
		for (m = (void *)answer; NLMSG_OK(m, n); m = NLMSG_NEXT(m, n)) {
			if (m->nlmsg_type == NLMSG_ERROR) {
				err = ((struct nlmsgerr *)NLMSG_DATA(m))->error;
				close(fd);
				return err;
			}
			if (m->nlmsg_len <= sizeof(*r))
				memcpy(r, m, m->nlmsg_len);
		}
	}
}
