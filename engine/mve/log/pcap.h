/* A file of packets, as libpcap writes it (nanoseconds, raw IP), made of what went over sockets. */
#ifndef MVE_LOG_PCAP_H
#define MVE_LOG_PCAP_H

#include <stdio.h>

#include "engine/mve/log/conns.h"

struct pcap {
	FILE *file;
	uint64_t time_ns;	/* of the last packet: none goes back */
	uint64_t packets;
};

void pcap_begin(struct pcap *p, FILE *file);
/* For struct conns_user; `ctx` is a struct pcap. */
void pcap_moved(void *ctx, const struct conn_bytes *b);
void pcap_peer_ended(void *ctx, struct conn *c, uint64_t time_ns);
void pcap_ended(void *ctx, struct conn *c);

#endif
