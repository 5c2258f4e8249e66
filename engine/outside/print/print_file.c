/*
 * Printing what files and descriptors are described by: stat, statfs, statx,
 * directory entries, locks, offsets, epoll events, terminals.
 */
#include <asm/termbits.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "engine/outside/print/print_parts.h"

void pr_stat(struct call_print *p, const void *data)
{
	const struct stat *st = data;

	pr(p, "{st_mode=");
	pr_file_mode(p, st->st_mode);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		pr(p, ", st_rdev=");
		pr_dev(p, st->st_rdev);
	} else {
		pr(p, ", st_size=%lld", (long long)st->st_size);
	}
	pr(p, ", ...}");
}

void pr_statx(struct call_print *p, const void *data)
{
	const struct statx *st = data;

	pr(p, "{stx_mask=");
	pr_flags(p, &xlat_statx_mask, st->stx_mask);
	pr(p, ", stx_attributes=");
	pr_flags(p, &xlat_statx_attrs, st->stx_attributes);
	pr(p, ", stx_mode=");
	pr_file_mode(p, st->stx_mode);
	pr(p, ", stx_size=%llu, ...}", (unsigned long long)st->stx_size);
}

void pr_statfs(struct call_print *p, const void *data)
{
	const struct statfs *s = data;
	int fsid[2];

	memcpy(fsid, &s->f_fsid, sizeof(fsid));
	pr(p, "{f_type=");
	if (xlat_name(&xlat_fs_types, s->f_type))
		pr(p, "%s", xlat_name(&xlat_fs_types, s->f_type));
	else
		pr(p, "%#lx", (unsigned long)s->f_type);
	pr(p, ", f_bsize=%lu, f_blocks=%llu, f_bfree=%llu, f_bavail=%llu, f_files=%llu, "
	   "f_ffree=%llu, f_fsid={val=[%#x, %#x]}, f_namelen=%lu, f_frsize=%lu, f_flags=",
	   (unsigned long)s->f_bsize, (unsigned long long)s->f_blocks,
	   (unsigned long long)s->f_bfree, (unsigned long long)s->f_bavail,
	   (unsigned long long)s->f_files, (unsigned long long)s->f_ffree, fsid[0], fsid[1],
	   (unsigned long)s->f_namelen, (unsigned long)s->f_frsize);
	pr_flags(p, &xlat_statfs_flags, s->f_flags);
	pr(p, "}");
}

struct kernel_flock {
	int16_t type;
	int16_t whence;
	int64_t start;
	int64_t len;
	int32_t pid;
};

_Static_assert(sizeof(struct kernel_flock) == 32, "the kernel's");

void pr_flock(struct call_print *p, const void *data)
{
	const struct kernel_flock *l = data;

	pr(p, "{l_type=");
	pr_enum(p, &xlat_lock_types, (uint16_t)l->type);
	pr(p, ", l_whence=");
	pr_enum(p, &xlat_whence, (uint16_t)l->whence);
	pr(p, ", l_start=%lld, l_len=%lld", (long long)l->start, (long long)l->len);
	if (p->row->args[2].dir == DIR_IO)
		pr(p, ", l_pid=%d", l->pid);
	pr(p, "}");
}

void pr_owner(struct call_print *p, const void *data)
{
	const int32_t *o = data;

	pr(p, "{type=");
	pr_enum(p, &xlat_owner_types, (uint32_t)o[0]);
	pr(p, ", pid=%d}", o[1]);
}

void pr_ustat(struct call_print *p, const void *data)
{
	const struct { int32_t tfree; uint64_t tinode; } *u = data;

	pr(p, "{f_tfree=%d, f_tinode=%llu}", u->tfree, (unsigned long long)u->tinode);
}

void pr_mq_attr(struct call_print *p, const void *data)
{
	const int64_t *a = data;

	pr(p, "{mq_flags=");
	pr_flags(p, &xlat_mq_flags, a[0]);
	pr(p, ", mq_maxmsg=%lld, mq_msgsize=%lld, mq_curmsgs=%lld}", (long long)a[1],
	   (long long)a[2], (long long)a[3]);
}

void pr_cstatrange(struct call_print *p, const void *data)
{
	const uint64_t *r = data;

	pr(p, "{off=%#llx, len=%llu}", (unsigned long long)r[0], (unsigned long long)r[1]);
}

void pr_cstat(struct call_print *p, const void *data)
{
	const uint64_t *c = data;

	pr(p, "{nr_cache=%llu, nr_dirty=%llu, nr_writeback=%llu, nr_evicted=%llu, "
	   "nr_recently_evicted=%llu}", (unsigned long long)c[0], (unsigned long long)c[1],
	   (unsigned long long)c[2], (unsigned long long)c[3], (unsigned long long)c[4]);
}

#define ENTRY_LIMIT	(1 << 20)

/* Directories are only counted: both kinds of entry begin inode, offset, length. */
static void count_entries(struct call_print *p, uint64_t addr)
{
	unsigned entries = 0;
	int64_t at = 0;

	if (call_failed(p)) {
		pr_addr(p, addr);
		return;
	}
	for (; at < p->ret && entries < ENTRY_LIMIT; entries++) {
		uint16_t len;

		if (!mem_get(p, addr + at + 16, &len, sizeof(len)) || !len)
			break;
		at += len;
	}
	pr_addr(p, addr);
	pr(p, " /* %u entries */", entries);
}

void pr_dirents(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	(void)count, (void)arg;
	count_entries(p, addr);
}

void pr_dirents64(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	(void)count, (void)arg;
	count_entries(p, addr);
}

void pr_open_how(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint64_t how[3];

	(void)arg;
	if (count < sizeof(how) || !mem_get(p, addr, how, sizeof(how))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{flags=");
	pr_open_flags(p, how[0]);
	if (how[1] || how[0] & 0x400040) {
		pr(p, ", mode=%#03llo", (unsigned long long)how[1]);
	}
	pr(p, ", resolve=");
	pr_flags(p, &xlat_resolve_flags, how[2]);
	if (count > sizeof(how))
		pr_tail(p, addr, sizeof(how), count);
	pr(p, "}");
}

/* An offset before and after: [0] => [4096]. */
void pr_offset(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	int64_t off;

	(void)count;
	if (!mem_get(p, addr, &off, sizeof(off))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, p->nr == CALL_sendfile ? "[%llu]" : "[%lld]", (unsigned long long)p->saved[arg]);
	if (p->nr == CALL_sendfile && p->ret > 0)
		pr(p, " => [%llu]", (unsigned long long)off);
}

void pr_file_handle(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint8_t bytes[128];
	uint32_t head[2], was = p->saved[arg];

	(void)count;
	if (!mem_get(p, addr, head, sizeof(head))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{handle_bytes=%u", p->row->args[arg].dir == DIR_IO ? was : head[0]);
	if (p->row->args[arg].dir == DIR_IO && was != head[0])
		pr(p, " => %u", head[0]);
	if (!call_failed(p)) {
		pr(p, ", handle_type=%#x, f_handle=", head[1]);
		if (head[0] <= sizeof(bytes) && mem_get(p, addr + 8, bytes, head[0])) {
			pr(p, "0x");
			for (unsigned i = 0; i < head[0]; i++)
				pr(p, "%02x", bytes[i]);
		} else {
			pr(p, "???");
		}
	}
	pr(p, "}");
}

void pr_epoll_event(struct call_print *p, const void *data)
{
	const struct epoll_event *e = data;

	pr(p, "{events=");
	pr_flags(p, &xlat_epoll_events, e->events);
	pr(p, ", data={u32=%u, u64=%llu}}", e->data.u32, (unsigned long long)e->data.u64);
}

/* epoll_ctl(EPOLL_CTL_DEL) ignores its event. */
void pr_epoll_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct epoll_event e;

	if (p->nr == CALL_epoll_ctl) {
		if ((uint32_t)p->args[1] == EPOLL_CTL_DEL)
			pr_addr(p, addr);
		else if (pr_fetch(p, addr, &e, sizeof(e)))
			pr_epoll_event(p, &e);
		return;
	}
	if (call_failed(p)) {
		pr_addr(p, addr);
		return;
	}
	(void)arg;
	pr(p, "[");
	for (uint64_t i = 0; i < count; i++) {
		if (i)
			pr(p, ", ");
		if (i == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		if (!mem_get(p, addr + i * sizeof(e), &e, sizeof(e))) {
			pr(p, p->partial ? "..." : "");
			break;
		}
		pr_epoll_event(p, &e);
	}
	pr(p, "]");
}

void pr_winsize(struct call_print *p, const void *data)
{
	const uint16_t *w = data;

	pr(p, "{ws_row=%u, ws_col=%u, ws_xpixel=%u, ws_ypixel=%u}", w[0], w[1], w[2], w[3]);
}

/* Delays after control characters: fields of c_oflag, always printed. */
static void pr_oflag(struct call_print *p, unsigned v)
{
	static const struct { const char *name; unsigned shift, mask; } delays[] = {
		{ "NL", 8, 1 }, { "CR", 9, 3 }, { "TAB", 11, 3 },
		{ "BS", 13, 1 }, { "VT", 14, 1 }, { "FF", 15, 1 },
	};
	const unsigned all = 0xff00;

	for (unsigned i = 0; i < 6; i++)
		pr(p, "%s%s%u", i ? "|" : "", delays[i].name,
		   v >> delays[i].shift & delays[i].mask);
	pr_more_flags(p, &xlat_tc_oflag, v & ~all);
}

static void pr_cflag(struct call_print *p, unsigned v)
{
	const unsigned fields = CBAUD | CSIZE | CIBAUD;

	pr_enum(p, &xlat_tc_baud, v & CBAUD);
	if (v & CIBAUD) {
		pr(p, "|");
		pr_enum(p, &xlat_tc_baud, v >> 16 & CBAUD);
		pr(p, "<<IBSHIFT");
	}
	pr(p, "|CS%u", 5 + ((v & CSIZE) >> 4));
	pr_more_flags(p, &xlat_tc_cflag, v & ~fields);
}

void pr_termios(struct call_print *p, const void *data)
{
	const struct termios *t = data;

	pr(p, "{c_iflag=");
	pr_flags(p, &xlat_tc_iflag, t->c_iflag);
	pr(p, ", c_oflag=");
	pr_oflag(p, t->c_oflag);
	pr(p, ", c_cflag=");
	pr_cflag(p, t->c_cflag);
	pr(p, ", c_lflag=");
	pr_flags(p, &xlat_tc_lflag, t->c_lflag);
	pr(p, ", ...}");
}

void pr_io_event(struct call_print *p, const void *data)
{
	const uint64_t *e = data;

	pr(p, "{data=%#llx, obj=", (unsigned long long)e[0]);
	pr_addr(p, e[1]);
	pr(p, ", res=%lld, res2=%lld}", (long long)e[2], (long long)e[3]);
}

/* Reads and writes of one buffer, or of a vector; others have less to say. */
void pr_iocb(struct call_print *p, const void *data)
{
	const struct iocb *cb = data;
	unsigned op = cb->aio_lio_opcode;

	pr(p, "{aio_data=%#llx, ", (unsigned long long)cb->aio_data);
	if (cb->aio_key)
		pr(p, "aio_key=%u, ", cb->aio_key);
	if (cb->aio_rw_flags) {
		pr(p, "aio_rw_flags=");
		pr_flags(p, &xlat_rwf_flags, (uint32_t)cb->aio_rw_flags);
		pr(p, ", ");
	}
	pr(p, "aio_lio_opcode=");
	if (xlat_name(&xlat_aio_cmds, op))
		pr_enum(p, &xlat_aio_cmds, op);
	else
		pr(p, "%u /* IOCB_CMD_??? */", op);
	if (cb->aio_reqprio)
		pr(p, ", aio_reqprio=%d", cb->aio_reqprio);
	pr(p, ", aio_fildes=%d", (int)cb->aio_fildes);
	bool vector = op == IOCB_CMD_PREADV || op == IOCB_CMD_PWRITEV;

	if ((op == IOCB_CMD_PREAD || op == IOCB_CMD_PWRITE || vector) &&
	    (cb->aio_buf || cb->aio_nbytes || cb->aio_offset)) {
		pr(p, ", aio_buf=");
		if (op == IOCB_CMD_PWRITE)
			pr_buffer(p, cb->aio_buf, cb->aio_nbytes);
		else if (vector)
			pr_vectors(p, cb->aio_buf, cb->aio_nbytes, -1, op == IOCB_CMD_PWRITEV);
		else
			pr_addr(p, cb->aio_buf);
		if (!vector)
			pr(p, ", aio_nbytes=%llu", (unsigned long long)cb->aio_nbytes);
		pr(p, ", aio_offset=%lld", (long long)cb->aio_offset);
	}
	if (cb->aio_flags & IOCB_FLAG_RESFD)
		pr(p, ", aio_resfd=%d", (int)cb->aio_resfd);
	pr(p, "}");
}

void pr_iocb_list(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct iocb cb;
	uint64_t at;

	(void)arg;
	if ((int64_t)count <= 0 || !mem_get(p, addr, &at, sizeof(at))) {
		pr_addr(p, addr);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!mem_get(p, addr + i * sizeof(at), &at, sizeof(at))) {
			pr(p, ", ... /* 0x%llx */", (unsigned long long)(addr + i * sizeof(at)));
			break;
		}
		pr(p, i ? ", " : "[");
		if (i == ARRAY_LIMIT) {
			pr(p, "...");
			break;
		}
		if (pr_fetch(p, at, &cb, sizeof(cb)))
			pr_iocb(p, &cb);
	}
	pr(p, "]");
}

void pr_uring_params(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct io_uring_params params, *u = &params;

	(void)count, (void)arg;
	if (!mem_get(p, addr, &params, sizeof(params))) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{flags=");
	pr_flags(p, &xlat_uring_setup, u->flags);
	pr(p, ", sq_thread_cpu=%u, sq_thread_idle=%u", u->sq_thread_cpu, u->sq_thread_idle);
	if (u->flags & IORING_SETUP_ATTACH_WQ)
		pr(p, ", wq_fd=%d", (int)u->wq_fd);
	if (call_failed(p)) {
		pr(p, "}");
		return;
	}
	pr(p, ", sq_entries=%u, cq_entries=%u, features=", u->sq_entries, u->cq_entries);
	pr_flags(p, &xlat_uring_features, u->features);
	pr(p, ", sq_off={head=%u, tail=%u, ring_mask=%u, ring_entries=%u, flags=%u, dropped=%u, "
	   "array=%u}", u->sq_off.head, u->sq_off.tail, u->sq_off.ring_mask,
	   u->sq_off.ring_entries, u->sq_off.flags, u->sq_off.dropped, u->sq_off.array);
	pr(p, ", cq_off={head=%u, tail=%u, ring_mask=%u, ring_entries=%u, overflow=%u, cqes=%u, "
	   "flags=%u}}", u->cq_off.head, u->cq_off.tail, u->cq_off.ring_mask,
	   u->cq_off.ring_entries, u->cq_off.overflow, u->cq_off.cqes, u->cq_off.flags);
}
