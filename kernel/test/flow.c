// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define PERIOD 65521		/* a prime, so that no shift by a power of two fits */

static unsigned char pattern[2 * PERIOD];

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void pattern_make(void)
{
	uint64_t state = 1;
	int i;

	if (pattern[0])
		return;
	for (i = 0; i < PERIOD; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		pattern[i] = pattern[i + PERIOD] = state >> 56 | 1;
	}
}

/* Byte number at of what that side sends. */
static unsigned char byte_at(enum side side, uint64_t at)
{
	return pattern[at % PERIOD] ^ (unsigned char)((at / PERIOD) << 1) ^ side;
}

static void fill(unsigned char *buf, enum side side, uint64_t at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = byte_at(side, at + i);
}

static int fresh_socket(enum side side, bool plain)
{
	int fd;

	net_enter(side);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    plain ? IPPROTO_TCP : IPPROTO_MPTCP);
	if (fd < 0)
		die("no MPTCP socket: %s", strerror(errno));
	return fd;
}

static bool await(int fd, short events, double until_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	double left = until_ms - now_ms();

	return poll(&p, 1, left > 0 ? (int)left + 1 : 0) > 0;
}

bool connection_open(struct connection *c, int port, double limit_ms)
{
	struct sockaddr_in proxy = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in own = { .sin_family = AF_INET };
	double until = now_ms() + limit_ms;
	int err = 0, one = 1;
	socklen_t len = sizeof(err);

	pattern_make();
	proxy.sin_addr.s_addr = inet_addr(PROXY_ADDRESS);
	own.sin_addr.s_addr = inet_addr("10.77.1.2");

	c->listener = fresh_socket(PROXY, c->plain);
	setsockopt(c->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(c->listener, (void *)&proxy, sizeof(proxy)) || listen(c->listener, 8))
		die("cannot listen: %s", strerror(errno));

	c->fd[DEVICE] = fresh_socket(DEVICE, c->plain);
	c->fd[PROXY] = -1;
	if (bind(c->fd[DEVICE], (void *)&own, sizeof(own)))
		die("cannot bind: %s", strerror(errno));
	if (connect(c->fd[DEVICE], (void *)&proxy, sizeof(proxy)) && errno != EINPROGRESS)
		die("cannot connect: %s", strerror(errno));
	if (await(c->fd[DEVICE], POLLOUT, until) &&
	    !getsockopt(c->fd[DEVICE], SOL_SOCKET, SO_ERROR, &err, &len) && !err &&
	    await(c->listener, POLLIN, until))
		c->fd[PROXY] = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return c->fd[PROXY] >= 0;
}

void connection_close(struct connection *c)
{
	close(c->listener);
	close(c->fd[DEVICE]);
	if (c->fd[PROXY] >= 0)
		close(c->fd[PROXY]);
}

static void write_some(struct connection *c, enum side side)
{
	static unsigned char buf[1 << 18];
	struct flow *f = &c->from[side];
	uint64_t left = f->size - f->sent;
	size_t len = f->chunk;
	ssize_t n;

	if (len > left)
		len = left;
	if (len > sizeof(buf))
		len = sizeof(buf);
	if (len) {
		fill(buf, side, f->sent, len);
		n = send(c->fd[side], buf, len, MSG_NOSIGNAL);
		if (n < 0) {
			if (errno != EAGAIN)
				c->wrong = strerror(errno);
			return;
		}
		f->sent += n;
		f->next_ms += f->every_ms;
	}
	if (f->sent == f->size) {
		shutdown(c->fd[side], SHUT_WR);
		f->closed = true;
	}
}

static void read_some(struct connection *c, enum side side)
{
	static unsigned char buf[1 << 18];
	struct flow *f = &c->from[!side];
	double now = now_ms();
	ssize_t n, i;

	n = recv(c->fd[side], buf, sizeof(buf), 0);
	if (n < 0) {
		if (errno != EAGAIN)
			c->wrong = strerror(errno);
		return;
	}
	if (f->wait_from_ms && f->last_ms >= f->wait_from_ms && now - f->last_ms > f->gap_ms)
		f->gap_ms = now - f->last_ms;
	f->last_ms = now;
	if (!n) {
		f->ended = true;
		if (f->got != f->size)
			c->wrong = "ended early";
		return;
	}
	for (i = 0; i < n; i++)
		if (buf[i] != byte_at(!side, f->got + i)) {
			c->wrong = "data differ";
			return;
		}
	f->got += n;
	if (f->got > f->size)
		c->wrong = "more data than sent";
}

bool connection_done(const struct connection *c)
{
	return c->from[PROXY].ended && c->from[DEVICE].ended;
}

bool connection_run(struct connection *c, double until_ms)
{
	while (!c->wrong && !connection_done(c)) {
		struct pollfd p[2];
		double now = now_ms(), wake = until_ms;
		struct timespec wait;
		long long ns;
		enum side s;

		if (now >= until_ms)
			return true;
		for (s = PROXY; s <= DEVICE; s++) {
			struct flow *f = &c->from[s];
			bool later = f->next_ms > now && f->sent < f->size;

			p[s].fd = c->fd[s];
			p[s].events = (!c->from[!s].ended ? POLLIN : 0) |
				      (!f->closed && !later ? POLLOUT : 0);
			if (!p[s].events)
				p[s].fd = -1;
			if (!f->closed && later && f->next_ms < wake)
				wake = f->next_ms;
		}
		/* A nanosecond more, so that wake has come; in whole numbers,
		 * or the rest may round to a full second.
		 */
		ns = wake > now ? (wake - now) * 1e6 + 1 : 0;
		wait.tv_sec = ns / 1000000000;
		wait.tv_nsec = ns % 1000000000;
		if (ppoll(p, 2, &wait, NULL) < 0)
			die("ppoll: %s", strerror(errno));
		for (s = PROXY; s <= DEVICE; s++) {
			if (p[s].fd < 0)
				continue;
			if (p[s].revents & (POLLIN | POLLERR | POLLHUP) && !c->from[!s].ended)
				read_some(c, s);
			if (p[s].revents & POLLOUT && !c->from[s].closed)
				write_some(c, s);
		}
	}
	return !c->wrong;
}
