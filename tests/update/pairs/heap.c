/* What is known of allocations, by four threads at random: where each begins, and its size. */
#include <malloc.h>
#include <pthread.h>

#define HELD	500
#define STEPS	60000

char *heap_base(const void *at, size_t *size);

static int wrong;

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

static char *allocated(unsigned *seed, char *was, size_t size)
{
	void *at = NULL;

	switch (was ? 0 : next(seed) % 5) {
	case 0: return realloc(was, size);
	case 1: return calloc(size, 1);
	case 2: return posix_memalign(&at, 64u << next(seed) % 7, size) ? NULL : at;
	case 3: return aligned_alloc(32, size);
	default: return malloc(size);
	}
}

static void known(unsigned *seed, char *at, size_t size)
{
	size_t found = 0;

	if (heap_base(at + next(seed) % (size + 1), &found) != at || found != size ||
	    malloc_usable_size(at) != size)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	char *at[HELD] = { 0 };
	size_t size[HELD] = { 0 }, found;

	for (int i = 0; i < STEPS; i++) {
		unsigned k = next(&seed) % HELD;

		if (at[k])
			known(&seed, at[k], size[k]);
		if (at[k] && next(&seed) % 2) {
			free(at[k]);
			at[k] = NULL;
			continue;
		}
		size[k] = 1 + next(&seed) % (next(&seed) % 50 ? 300 : 300000);
		at[k] = allocated(&seed, at[k], size[k]);
		memset(at[k], 0xa5, size[k]);
		known(&seed, at[k], size[k]);
	}
	for (int i = 0; i < HELD; i++)
		free(at[i]);
	if (heap_base(at, &found) || heap_base(churn, &found))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void make(void)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void show(void)
{
	printf("wrong: %d\n", wrong);
	if (wrong)
		abort();
}
