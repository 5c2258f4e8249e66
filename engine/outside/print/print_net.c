/*
 * Printing sockets: addresses, vectors, messages with their control data, and
 * options.
 *
 * Lengths here come from the program and may be nonsense; every object is copied
 * into a buffer of fixed size first and only what was copied is looked at.
 */
#include <arpa/inet.h>
#include <asm/socket.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/outside/print/print_parts.h"

static void pr_unix(struct call_print *p, const struct sockaddr_un *un, size_t len)
{
	size_t path = len - offsetof(struct sockaddr_un, sun_path);

	if (len <= offsetof(struct sockaddr_un, sun_path))
		return;
	if (path > sizeof(un->sun_path))
		path = sizeof(un->sun_path);
	pr(p, ", sun_path=");
	if (un->sun_path[0]) {
		pr_quoted(p, un->sun_path, strnlen(un->sun_path, path));
	} else {
		pr(p, "@");
		pr_quoted(p, un->sun_path + 1, path - 1);
	}
}

static void pr_in6(struct call_print *p, const struct sockaddr_in6 *in6, size_t len)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
	pr(p, ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), "
	   "inet_pton(AF_INET6, \"%s\", &sin6_addr)", ntohs(in6->sin6_port),
	   ntohl(in6->sin6_flowinfo), text);
	if (len < sizeof(*in6))
		return;
	char name[IF_NAMESIZE];

	if ((IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ||
	     IN6_IS_ADDR_MC_LINKLOCAL(&in6->sin6_addr)) && in6->sin6_scope_id &&
	    if_indextoname(in6->sin6_scope_id, name))
		pr(p, ", sin6_scope_id=if_nametoindex(\"%s\")", name);
	else
		pr(p, ", sin6_scope_id=%u", in6->sin6_scope_id);
}

static void pr_in(struct call_print *p, const struct sockaddr_in *in)
{
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
	pr(p, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", ntohs(in->sin_port), text);
}

void pr_sockaddr(struct call_print *p, const void *data, size_t len)
{
	const struct sockaddr *sa = data;
	const struct sockaddr_nl *nl = data;

	pr(p, "{sa_family=");
	pr_enum(p, &xlat_families, sa->sa_family);
	if (sa->sa_family == AF_UNIX) {
		pr_unix(p, data, len);
	} else if (sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
		pr_in(p, data);
	} else if (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6) - 4) {
		pr_in6(p, data, len);
	} else if (sa->sa_family == AF_NETLINK && len >= sizeof(*nl)) {
		pr(p, ", nl_pid=%d, nl_groups=%08x", nl->nl_pid, nl->nl_groups);
	} else if (len > sizeof(sa->sa_family)) {
		pr(p, ", sa_data=");
		pr_quoted(p, sa->sa_data, len - sizeof(sa->sa_family));
	}
	pr(p, "}");
}

static void pr_sockaddr_len(struct call_print *p, uint64_t addr, uint64_t len)
{
	struct sockaddr_storage ss;

	memset(&ss, 0, sizeof(ss));
	if (len > sizeof(ss))
		len = sizeof(ss);
	if (len < 2 || !mem_get(p, addr, &ss, len))
		pr_addr(p, addr);
	else
		pr_sockaddr(p, &ss, len);
}

void pr_sockaddr_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	const struct arg_desc *a = &p->row->args[arg];
	uint32_t now;

	if (a->dir == DIR_IN) {
		pr_sockaddr_len(p, addr, (uint32_t)count);
		return;
	}
	if (call_failed(p) || !mem_get(p, p->args[a->len_arg], &now, sizeof(now))) {
		pr_addr(p, addr);
		return;
	}
	pr_sockaddr_len(p, addr, now < count ? now : count);
}

/* A length that the call overwrites: [128 => 16]. */
void pr_socklen(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	int now, was = (int)p->saved[arg];

	(void)count;
	if (!mem_get(p, addr, &now, sizeof(now)))
		pr_addr(p, addr);
	else if (call_failed(p) || now == was)
		pr(p, "[%d]", was);
	else
		pr(p, "[%d => %d]", was, now);
}

struct vec {
	uint64_t base;
	uint64_t len;
};

/* `left` bytes of content are shown over the vectors; all of each when < 0. */
void pr_vectors(struct call_print *p, uint64_t addr, uint64_t count, int64_t left,
		bool contents)
{
	struct vec v;

	if (!count) {
		pr(p, "[]");
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t show;

		if (!mem_get(p, addr + i * sizeof(v), &v, sizeof(v))) {
			if (!i) {
				pr_addr(p, addr);
				return;
			}
			pr_rest(p, addr + i * sizeof(v));
			break;
		}
		pr(p, i ? ", " : "[");
		if (i == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		show = left >= 0 && (uint64_t)left < v.len ? (uint64_t)left : v.len;
		pr(p, "{iov_base=");
		if (contents)
			pr_buffer(p, v.base, show);
		else
			pr_addr(p, v.base);
		pr(p, ", iov_len=%llu}", (unsigned long long)v.len);
		if (left >= 0)
			left -= show;
	}
	pr(p, "]");
}

void pr_iovec(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	bool out = p->row->args[arg].dir == DIR_OUT;

	pr_vectors(p, addr, count, out ? p->ret : -1, !(out && call_failed(p)));
}

/* Another process's memory: addresses only. */
void pr_iovaddr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	(void)arg;
	pr_vectors(p, addr, count, -1, false);
}

static void pr_pktinfo(struct call_print *p, const uint8_t *data)
{
	const struct in_pktinfo *info = (const void *)data;
	char name[IF_NAMESIZE], spec[INET_ADDRSTRLEN], addr[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &info->ipi_spec_dst, spec, sizeof(spec));
	inet_ntop(AF_INET, &info->ipi_addr, addr, sizeof(addr));
	if (if_indextoname(info->ipi_ifindex, name))
		pr(p, "{ipi_ifindex=if_nametoindex(\"%s\")", name);
	else
		pr(p, "{ipi_ifindex=%u", info->ipi_ifindex);
	pr(p, ", ipi_spec_dst=inet_addr(\"%s\"), ipi_addr=inet_addr(\"%s\")}", spec, addr);
}

static void pr_cmsg_data(struct call_print *p, const struct cmsghdr *c, const uint8_t *data,
			 size_t len)
{
	const int32_t *words = (const int32_t *)data;

	if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		for (size_t i = 0; i < len / 4 && i < ARRAY_LIMIT; i++)
			pr(p, "%s%d", i ? ", " : "[", words[i]);
		pr(p, len / 4 > ARRAY_LIMIT ? ", ...]" : "]");
	} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && len >= 12) {
		pr(p, "{pid=%d, uid=%d, gid=%d}", words[0], words[1], words[2]);
	} else if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_PKTINFO && len >= 12) {
		pr_pktinfo(p, data);
	} else if (c->cmsg_level == SOL_SOCKET && len >= 16 &&
		   (c->cmsg_type == SO_TIMESTAMP_OLD || c->cmsg_type == SO_TIMESTAMP_NEW)) {
		pr_timeval(p, data);
	} else if (c->cmsg_level == SOL_SOCKET && len >= 16 &&
		   (c->cmsg_type == SO_TIMESTAMPNS_OLD || c->cmsg_type == SO_TIMESTAMPNS_NEW)) {
		pr_timespec(p, data);
	} else if (c->cmsg_level == SOL_IP && (c->cmsg_type == IP_TTL || c->cmsg_type == IP_TOS) &&
		   len) {
		pr(p, c->cmsg_type == IP_TOS ? "[%#x]" : "[%u]",
		   c->cmsg_type == IP_TOS ? data[0] : (unsigned)words[0]);
	} else {
		pr_quoted(p, data, len);
	}
}

static const struct xlat *cmsg_types(int level)
{
	switch (level) {
	case SOL_SOCKET:
		return &xlat_scm_types;
	case SOL_IP:
		return &xlat_ip_opts;
	case SOL_IPV6:
		return &xlat_ipv6_opts;
	}
	return &xlat_none;
}

static void pr_control(struct call_print *p, uint64_t addr, uint64_t len)
{
	uint8_t buf[4096] __attribute__((aligned(8)));
	size_t at = 0, have;

	have = mem_get_some(p, addr, buf, len < sizeof(buf) ? len : sizeof(buf));
	if (have < sizeof(struct cmsghdr)) {
		pr_addr(p, addr);
		return;
	}
	while (at + sizeof(struct cmsghdr) <= have) {
		const struct cmsghdr *c = (void *)(buf + at);
		size_t body = c->cmsg_len;

		pr(p, "%s{cmsg_len=%llu, cmsg_level=", at ? ", " : "[",
		   (unsigned long long)c->cmsg_len);
		pr_enum(p, &xlat_sock_levels, (uint32_t)c->cmsg_level);
		pr(p, ", cmsg_type=");
		pr_enum(p, cmsg_types(c->cmsg_level), (uint32_t)c->cmsg_type);
		if (body > have - at)
			body = have - at;
		if (body > sizeof(*c)) {
			pr(p, ", cmsg_data=");
			pr_cmsg_data(p, c, buf + at + sizeof(*c), body - sizeof(*c));
		}
		pr(p, "}");
		if (c->cmsg_len < sizeof(*c))
			break;
		at += (body + 7) & ~7ull;
	}
	pr(p, "]");
}

struct msg {
	uint64_t name;
	uint32_t namelen;
	uint32_t pad;
	uint64_t iov;
	uint64_t iovlen;
	uint64_t control;
	uint64_t controllen;
	uint32_t flags;
};

_Static_assert(sizeof(struct msg) == 56 && sizeof(struct vec) == 16, "the kernel's");

static void pr_msg(struct call_print *p, const struct msg *m, uint32_t was, int64_t bytes,
		   bool received)
{
	uint32_t len = received && was < m->namelen ? was : m->namelen;

	pr(p, "{msg_name=");
	if (m->name && len)
		pr_sockaddr_len(p, m->name, len);
	else
		pr_addr(p, m->name);
	if (received && was != m->namelen)
		pr(p, ", msg_namelen=%d => %d, msg_iov=", was, m->namelen);
	else
		pr(p, ", msg_namelen=%d, msg_iov=", m->namelen);
	if (m->iov)
		pr_vectors(p, m->iov, m->iovlen, bytes, true);
	else
		pr(p, "NULL");
	pr(p, ", msg_iovlen=%llu", (unsigned long long)m->iovlen);
	if (m->controllen) {
		pr(p, ", msg_control=");
		pr_control(p, m->control, m->controllen);
	}
	pr(p, ", msg_controllen=%llu, msg_flags=", (unsigned long long)m->controllen);
	pr_flags(p, &xlat_msg_flags, m->flags);
	pr(p, "}");
}

void pr_msghdr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	bool received = p->row->args[arg].dir == DIR_OUT;
	struct msg m;

	(void)count;
	if (!mem_get(p, addr, &m, sizeof(m)))
		pr_addr(p, addr);
	else if (received && call_failed(p))
		pr(p, "{msg_namelen=%d}", m.namelen);
	else
		pr_msg(p, &m, p->saved[arg], received ? p->ret : -1, received);
}

/* recvmmsg() and sendmmsg(): as many as were moved. */
void pr_mmsghdr(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct { struct msg m; uint32_t len; uint32_t pad; } mm;
	bool received = p->row->args[arg].dir == DIR_OUT;

	if (call_failed(p) && received) {
		pr_addr(p, addr);
		return;
	}
	if (!received && p->ret >= 0)
		count = p->ret;
	else
		count = (uint32_t)count;
	for (uint64_t i = 0; i < count && i < ARRAY_LIMIT; i++) {
		if (!mem_get(p, addr + i * 64, &mm, sizeof(mm)))
			break;
		pr(p, "%s{msg_hdr=", i ? ", " : "[");
		pr_msg(p, &mm.m, mm.m.namelen, received ? (int64_t)mm.len : -1, received);
		if (!call_failed(p))
			pr(p, ", msg_len=%u", mm.len);
		pr(p, "}");
	}
	pr(p, count ? "]" : "[]");
}

static const struct xlat *option_names(unsigned level)
{
	switch (level) {
	case SOL_SOCKET:
		return &xlat_so_opts;
	case SOL_IP:
		return &xlat_ip_opts;
	case SOL_IPV6:
		return &xlat_ipv6_opts;
	case IPPROTO_TCP:
		return &xlat_tcp_opts;
	case IPPROTO_UDP:
	case 136:
		return &xlat_udp_opts;
	case 263:
		return &xlat_packet_opts;
	case 270:
		return &xlat_netlink_opts;
	}
	return &xlat_none;
}

static bool option_is(struct call_print *p, unsigned level, unsigned opt)
{
	return (uint32_t)p->args[1] == level && (uint32_t)p->args[2] == opt;
}

/* Options of SOL_SOCKET are ints, but for these. */
static bool option_is_int(struct call_print *p)
{
	switch ((uint32_t)p->args[2]) {
	case SO_LINGER:
	case SO_PEERCRED:
	case SO_RCVTIMEO_OLD:
	case SO_SNDTIMEO_OLD:
	case SO_RCVTIMEO_NEW:
	case SO_SNDTIMEO_NEW:
	case SO_BINDTODEVICE:
	case SO_ATTACH_FILTER:
	case SO_ATTACH_REUSEPORT_CBPF:
	case SO_PEERNAME:
	case SO_PEERSEC:
	case SO_MEMINFO:
	case SO_COOKIE:
	case SO_PEERGROUPS:
	case SO_TXTIME:
	case SO_NETNS_COOKIE:
	case SO_MAX_PACING_RATE:
		return false;
	}
	return (uint32_t)p->args[1] == SOL_SOCKET && (uint32_t)p->args[2] <= SO_TXREHASH;
}

/* A part of an int: only getsockopt() makes sense of that. */
static void pr_short_option(struct call_print *p, uint64_t addr, uint64_t count)
{
	uint8_t bytes[4];

	if (p->nr == CALL_setsockopt || !mem_get(p, addr, bytes, count))
		pr_addr(p, addr);
	else
		pr_hexed(p, bytes, count);
}

void pr_sockopt(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	int32_t v[4];

	(void)arg;
	if (p->nr == CALL_setsockopt)
		count = (uint32_t)count > INT32_MAX ? 0 : (uint32_t)count;
	if ((call_failed(p) && p->nr == CALL_getsockopt) || !count) {
		pr_addr(p, addr);
	} else if (option_is_int(p) && count < 4) {
		pr_short_option(p, addr, count);
	} else if (option_is_int(p) && !option_is(p, SOL_SOCKET, SO_ERROR) &&
		   mem_get(p, addr, v, 4)) {
		pr(p, "[%d]", v[0]);
	} else if (option_is(p, SOL_SOCKET, SO_LINGER) && count >= 8 && mem_get(p, addr, v, 8)) {
		pr(p, "{l_onoff=%d, l_linger=%d}", v[0], v[1]);
	} else if (option_is(p, SOL_SOCKET, SO_PEERCRED) && count >= 12 &&
		   mem_get(p, addr, v, 12)) {
		pr(p, "{pid=%d, uid=%u, gid=%u}", v[0], v[1], v[2]);
	} else if (option_is(p, SOL_SOCKET, SO_ERROR) && count >= 4 && mem_get(p, addr, v, 4)) {
		if (v[0] && strerrorname_np(v[0]))
			pr(p, "[%s]", strerrorname_np(v[0]));
		else
			pr(p, "[%d]", v[0]);
	} else if (count == sizeof(int) && mem_get(p, addr, v, 4)) {
		pr(p, "[%d]", v[0]);
	} else {
		pr_buffer(p, addr, count);
	}
}

/* Both calls begin (fd, level, option), and the option's names are the level's. */
void special_sockopt(struct call_print *p)
{
	const struct xlat *names = option_names(p->args[1]);
	uint32_t now;

	if (!p->exiting) {
		print_args(p, 2);
		pr(p, ", ");
		if (names == &xlat_none)
			pr(p, "%#x", (unsigned)p->args[2]);
		else
			pr_enum(p, names, (uint32_t)p->args[2]);
		p->next = 3;
		print_args(p, p->row->nargs);
		return;
	}
	if (p->nr == CALL_getsockopt && !call_failed(p) && mem_get(p, p->args[4], &now, 4) &&
	    now < p->saved[3])
		p->saved[3] = now;
	print_args(p, p->row->nargs);
}

/* The name of an interface, and what the request asks about it. */
void pr_ifreq_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct ifreq r;

	(void)count, (void)arg;
	if (call_failed(p) || !mem_get(p, addr, &r, sizeof(r))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{ifr_name=");
	pr_quoted(p, r.ifr_name, strnlen(r.ifr_name, IFNAMSIZ));
	switch (p->args[1]) {
	case 0x8933:
	case 0x8910:
		pr(p, ", ifr_ifindex=%d", r.ifr_ifindex);
		break;
	case 0x8921:
		pr(p, ", ifr_mtu=%d", r.ifr_mtu);
		break;
	case 0x8915:
	case 0x8919:
	case 0x891b:
		pr(p, p->args[1] == 0x8915 ? ", ifr_addr=" :
		   p->args[1] == 0x8919 ? ", ifr_broadaddr=" : ", ifr_netmask=");
		pr_sockaddr(p, &r.ifr_addr, sizeof(r.ifr_addr));
		break;
	}
	pr(p, "}");
}
