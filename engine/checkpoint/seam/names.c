/*
 * getnameinfo, asked for numbers only: what libc writes then is only what it was given, so nothing
 * of its memory need be looked at.  All else, and what does not fit, is libc's.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "engine/checkpoint/seam/calls.h"

#define PORT_ROOM	sizeof("65535")

/* An address, but for one of a link, whose name the kernel is asked for; 0: it is none. */
static int numbers(const struct sockaddr *of, socklen_t size, char *address, char *port)
{
	const struct sockaddr_in *in = (const void *)of;
	const struct sockaddr_in6 *in6 = (const void *)of;

	if (!of || size < sizeof(*in))
		return 0;
	if (of->sa_family == AF_INET) {
		snprintf(port, PORT_ROOM, "%u", ntohs(in->sin_port));
		return inet_ntop(AF_INET, &in->sin_addr, address, INET6_ADDRSTRLEN) != NULL;
	}
	if (of->sa_family != AF_INET6 || size < sizeof(*in6) || in6->sin6_scope_id)
		return 0;
	snprintf(port, PORT_ROOM, "%u", ntohs(in6->sin6_port));
	return inet_ntop(AF_INET6, &in6->sin6_addr, address, INET6_ADDRSTRLEN) != NULL;
}

static void put(char *to, const char *text)
{
	seam_written(to, strlen(text) + 1);
	strcpy(to, text);
}

int mve_seam_getnameinfo(const struct sockaddr *of, socklen_t size, char *host, socklen_t host_size,
			 char *service, socklen_t service_size, int flags)
{
	char address[INET6_ADDRSTRLEN], port[PORT_ROOM];
	int asks = (host && host_size ? NI_NUMERICHOST : 0) |
		   (service && service_size ? NI_NUMERICSERV : 0);
	int others = flags & ~(NI_NUMERICHOST | NI_NUMERICSERV | NI_DGRAM);

	if ((asks & ~flags) || others || !numbers(of, size, address, port) ||
	    (asks & NI_NUMERICHOST && strlen(address) >= host_size) ||
	    (asks & NI_NUMERICSERV && strlen(port) >= service_size)) {
		seam_written(host, host_size);
		seam_written(service, service_size);
		return getnameinfo(of, size, host, host_size, service, service_size, flags);
	}
	if (asks & NI_NUMERICHOST)
		put(host, address);
	if (asks & NI_NUMERICSERV)
		put(service, port);
	return 0;
}
