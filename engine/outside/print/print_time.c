/*
 * Printing times, limits and accounts.
 */
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <time.h>
#include <utime.h>

#include "engine/outside/print/print_parts.h"

void pr_timespec(struct call_print *p, const void *data)
{
	const struct timespec *t = data;

	pr(p, "{tv_sec=%lld, tv_nsec=%lld}", (long long)t->tv_sec, (long long)t->tv_nsec);
}

void pr_timeval(struct call_print *p, const void *data)
{
	const struct timeval *t = data;

	pr(p, "{tv_sec=%lld, tv_usec=%lld}", (long long)t->tv_sec, (long long)t->tv_usec);
}

void pr_timezone(struct call_print *p, const void *data)
{
	const struct timezone *t = data;

	pr(p, "{tz_minuteswest=%d, tz_dsttime=%d}", t->tz_minuteswest, t->tz_dsttime);
}

void pr_itimerval(struct call_print *p, const void *data)
{
	const struct itimerval *t = data;

	pr(p, "{it_interval=");
	pr_timeval(p, &t->it_interval);
	pr(p, ", it_value=");
	pr_timeval(p, &t->it_value);
	pr(p, "}");
}

void pr_itimerspec(struct call_print *p, const void *data)
{
	const struct itimerspec *t = data;

	pr(p, "{it_interval=");
	pr_timespec(p, &t->it_interval);
	pr(p, ", it_value=");
	pr_timespec(p, &t->it_value);
	pr(p, "}");
}

/* A date in the local time zone. */
static bool date_exists(int64_t seconds)
{
	time_t t = seconds;
	struct tm tm;

	return localtime_r(&t, &tm);
}

void pr_date(struct call_print *p, int64_t seconds, long ns, int digits)
{
	char text[64], zone[16];
	time_t t = seconds;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(text, sizeof(text), "%FT%T", &tm))
		return;
	strftime(zone, sizeof(zone), "%z", &tm);
	pr(p, "%s", text);
	if (ns)
		pr(p, ".%0*ld", digits, ns);
	pr(p, "%s", zone);
}

static void pr_date_comment(struct call_print *p, int64_t seconds, long ns, int digits)
{
	if ((!seconds && !ns) || !date_exists(seconds))
		return;
	pr(p, " /* ");
	pr_date(p, seconds, ns, digits);
	pr(p, " */");
}

void pr_utimbuf(struct call_print *p, const void *data)
{
	const struct utimbuf *t = data;

	pr(p, "{actime=%lld", (long long)t->actime);
	pr_date_comment(p, t->actime, 0, 0);
	pr(p, ", modtime=%lld", (long long)t->modtime);
	pr_date_comment(p, t->modtime, 0, 0);
	pr(p, "}");
}

void pr_utimes(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct timeval t[2];

	(void)count, (void)arg;
	if (!pr_fetch(p, addr, t, sizeof(t)))
		return;
	for (int i = 0; i < 2; i++) {
		pr(p, i ? ", " : "[");
		pr_timeval(p, &t[i]);
		if (t[i].tv_usec >= 0 && t[i].tv_usec < 1000000)
			pr_date_comment(p, t[i].tv_sec, t[i].tv_usec, 6);
	}
	pr(p, "]");
}

void pr_utimes_ns(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct timespec t[2];

	(void)count, (void)arg;
	if (!pr_fetch(p, addr, t, sizeof(t)))
		return;
	for (int i = 0; i < 2; i++) {
		pr(p, i ? ", " : "[");
		if (t[i].tv_nsec == 0x3fffffff) {
			pr(p, "UTIME_NOW");
		} else if (t[i].tv_nsec == 0x3ffffffe) {
			pr(p, "UTIME_OMIT");
		} else {
			pr_timespec(p, &t[i]);
			if (t[i].tv_nsec >= 0 && t[i].tv_nsec < 1000000000)
				pr_date_comment(p, t[i].tv_sec, t[i].tv_nsec, 9);
		}
	}
	pr(p, "]");
}

void pr_tms(struct call_print *p, const void *data)
{
	const struct tms *t = data;

	pr(p, "{tms_utime=%ld, tms_stime=%ld, tms_cutime=%ld, tms_cstime=%ld}", t->tms_utime,
	   t->tms_stime, t->tms_cutime, t->tms_cstime);
}

void pr_time(struct call_print *p, const void *data)
{
	const int64_t *t = data;

	pr(p, "[%lld", (long long)*t);
	pr_date_comment(p, *t, 0, 0);
	pr(p, "]");
}

static void pr_limit(struct call_print *p, uint64_t v)
{
	if (v == UINT64_MAX)
		pr(p, "RLIM64_INFINITY");
	else if (v > 1024 && v % 1024 == 0)
		pr(p, "%llu*1024", (unsigned long long)v / 1024);
	else
		pr(p, "%llu", (unsigned long long)v);
}

void pr_rlimit(struct call_print *p, const void *data)
{
	const uint64_t *r = data;

	pr(p, "{rlim_cur=");
	pr_limit(p, r[0]);
	pr(p, ", rlim_max=");
	pr_limit(p, r[1]);
	pr(p, "}");
}

void pr_rusage(struct call_print *p, const void *data)
{
	const struct rusage *r = data;

	pr(p, "{ru_utime=");
	pr_timeval(p, &r->ru_utime);
	pr(p, ", ru_stime=");
	pr_timeval(p, &r->ru_stime);
	pr(p, ", ...}");
}

/* wait4() fills it only when it found a child. */
void pr_rusage_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct rusage r;

	(void)count, (void)arg;
	if (call_failed(p) || (p->nr == CALL_wait4 && p->ret <= 0))
		pr_addr(p, addr);
	else if (pr_fetch(p, addr, &r, sizeof(r)))
		pr_rusage(p, &r);
}

void pr_sysinfo(struct call_print *p, const void *data)
{
	const struct sysinfo *s = data;

	pr(p, "{uptime=%llu, loads=[%llu, %llu, %llu], totalram=%llu, freeram=%llu, "
	   "sharedram=%llu, bufferram=%llu, ", (unsigned long long)s->uptime,
	   (unsigned long long)s->loads[0], (unsigned long long)s->loads[1],
	   (unsigned long long)s->loads[2], (unsigned long long)s->totalram,
	   (unsigned long long)s->freeram, (unsigned long long)s->sharedram,
	   (unsigned long long)s->bufferram);
	pr(p, "totalswap=%llu, freeswap=%llu, procs=%u, totalhigh=%llu, freehigh=%llu, "
	   "mem_unit=%u}", (unsigned long long)s->totalswap, (unsigned long long)s->freeswap,
	   s->procs, (unsigned long long)s->totalhigh, (unsigned long long)s->freehigh,
	   s->mem_unit);
}

void pr_timex(struct call_print *p, const void *data)
{
	const struct timex *t = data;

	pr(p, "{modes=%s%x, offset=%ld, freq=%ld, maxerror=%ld, esterror=%ld, status=%#x, "
	   "constant=%ld, precision=%ld, tolerance=%ld, time=", t->modes ? "0x" : "", t->modes,
	   t->offset, t->freq, t->maxerror, t->esterror, t->status, t->constant, t->precision,
	   t->tolerance);
	pr_timeval(p, &t->time);
	pr(p, ", tick=%ld, ppsfreq=%ld, jitter=%ld, shift=%d, stabil=%ld, jitcnt=%ld, "
	   "calcnt=%ld, errcnt=%ld, stbcnt=%ld, tai=%d}", t->tick, t->ppsfreq, t->jitter,
	   t->shift, t->stabil, t->jitcnt, t->calcnt, t->errcnt, t->stbcnt, t->tai);
}

/* The time left after a sleep is written only when the sleep was cut short. */
void pr_timespec_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	bool rem = (p->nr == CALL_nanosleep && arg == 1) ||
		   (p->nr == CALL_clock_nanosleep && arg == 3);
	bool cut = p->ret == -4 || (p->ret <= -512 && p->ret >= -516);
	struct timespec t;

	(void)count;
	if (rem && p->nr == CALL_clock_nanosleep && p->args[1] & 1)
		cut = false;
	if (rem ? !cut : call_failed(p) && p->row->args[arg].dir == DIR_OUT)
		pr_addr(p, addr);
	else if (p->nr == CALL_epoll_pwait2 && call_failed(p))
		pr_addr(p, addr);
	else if (mem_get(p, addr, &t, sizeof(t)))
		pr_timespec(p, &t);
	else
		pr_addr(p, addr);
}
