/*
 * kv with a thread for each client, version 1: the published example of a live update.
 *
 *	kv PORT
 *
 * Requests and replies are servers/kv/v1.c's.  It can be updated to version 2 while it runs
 * (docs/updating.md): what is there for that is marked by the word update.
 */
#include "servers/kv/threads/kv.h"

#define SIZE	1024		/* lists of the table */

struct entry {
	struct entry *next;
	char *key, *value;
};

struct client {
	int fd;
	size_t len;
	char in[LINE_SIZE];
};

static struct entry *table[SIZE];
static unsigned long entries;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *find(const char *key)
{
	struct entry *e = table[hash_of(key) % SIZE];

	while (e && strcmp(e->key, key))
		e = e->next;
	return e;
}

static struct entry *add(const char *key)
{
	struct entry **list = &table[hash_of(key) % SIZE], *e = calloc(1, sizeof(*e));

	e->key = strdup(key);
	e->next = *list;
	*list = e;
	entries++;
	return e;
}

static int put(const char *key, const char *value, char *out)
{
	struct entry *e = find(key);

	if (!value || strlen(key) >= KEY_SIZE)
		return sprintf(out, "ERROR usage: PUT key value\n");
	if (!e)
		e = add(key);
	free(e->value);
	e->value = strdup(value);
	return sprintf(out, "OK\n");
}

static int get(const char *key, const char *value, char *out)
{
	struct entry *e = find(key);

	if (value)
		return sprintf(out, "ERROR usage: GET key\n");
	return e ? sprintf(out, "VALUE %s\n", e->value) : sprintf(out, "NONE\n");
}

static int answer(char *line, char *out)
{
	char *save, *verb = strtok_r(line, " \r", &save), *key = strtok_r(NULL, " \r", &save);
	char *value = key ? strtok_r(NULL, "\r", &save) : NULL;
	int n;

	if (!key)
		return sprintf(out, "ERROR unknown request\n");
	pthread_mutex_lock(&table_lock);
	if (!strcmp(verb, "PUT"))
		n = put(key, value, out);
	else if (!strcmp(verb, "GET"))
		n = get(key, value, out);
	else
		n = sprintf(out, "ERROR unknown request\n");
	pthread_mutex_unlock(&table_lock);
	return n;
}

/* False: the client is done. */
static int serve_lines(struct client *c)
{
	char out[LINE_SIZE + 32], *end;

	while ((end = memchr(c->in, '\n', c->len))) {
		int n;

		*end++ = 0;
		n = answer(c->in, out);
		c->len -= (size_t)(end - c->in);
		memmove(c->in, end, c->len);
		if (send_all(c->fd, out, (size_t)n) < 0)
			return 0;
	}
	return c->len < LINE_SIZE;
}

static void *serve(void *arg)
{
	struct client *c = arg;

	for (;;) {
		ssize_t n;

		mve_update_point("client");
		n = recv(c->fd, c->in + c->len, LINE_SIZE - c->len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		c->len += (size_t)n;
		if (!serve_lines(c))
			break;
	}
	close(c->fd);
	free(c);
	return NULL;
}

static void client_new(int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	pthread_t thread;

	c->fd = fd;
	if (pthread_create(&thread, NULL, serve, c)) {
		close(fd);
		free(c);
		return;
	}
	pthread_detach(thread);
}

int main(int argc, char **argv)
{
	int listening;

	if (!mve_local(listening))	/* update: it is open already */
		listening = listen_on(argc == 2 ? (unsigned)atoi(argv[1]) : 0);
	if (listening < 0)
		return 1;
	for (;;) {
		int fd;

		mve_update_point("main");
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			client_new(fd);
	}
}
