# vsftpd 2.0.4 and 2.0.5: the new version knows a command that the old one refuses.
vsftpd: read(4, "STOU\r\n", 512), write(4, "500 Unknown command", 19)
	; ok ;
	read(4, "FOOBAR\r\n", 512) = 8 [match vsftpd],
	write(4, "500 Unknown command", 19) = 19 [match vsftpd]

vsftpd_other_reply: read(4, "NOOP\r\n", 512), write(4, "200 ok", 6)
	; ok ;
	read(4, "NOOP\r\n", 512) = 6 [default], write(4, "200 ok", 6) = 6 [match]

vsftpd_wrong_reply: read(4, "STOU\r\n", 512), write(4, "500 Unknown command", 19)
	; diverge ;
	read(4, "FOOBAR\r\n", 512) = 8, write(4, "200 ok", 6)

# A read alone: what is undecided is released when the time is over.
undecided: read(4, "STOU\r\n", 512) ; ok ; read(4, "STOU\r\n", 512) = 6 [default]

open_dup: open("f", 0, 0) = 7 ; ok ; dup(3) = 1000 [run], lseek(1000, 0, 0) = 0 [run]
open_open: open("f", 0, 0) = 7 ; ok ; open("f", 0, 0) = 7 [default]
open_dup_close: open("f", 0, 0) = 7, close(7) ; diverge ; dup(3) = 1000, close(1000)

reorder: rt_sigaction(1, _, _, 8), rt_sigaction(2, _, _, 8), rt_sigaction(3, _, _, 8),
	rt_sigaction(4, _, _, 8)
	; ok ;
	rt_sigaction(4, _, _, 8) = 0 [match reorder], rt_sigaction(3, _, _, 8),
	rt_sigaction(2, _, _, 8), rt_sigaction(1, _, _, 8) = 0 [match reorder]
reorder_wrong: rt_sigaction(1, _, _, 8), rt_sigaction(2, _, _, 8), rt_sigaction(3, _, _, 8),
	rt_sigaction(4, _, _, 8)
	; diverge ;
	rt_sigaction(4, _, _, 8), rt_sigaction(2, _, _, 8)

wrapped: setgid(7) ; ok ; getpid() = 10 [run], setgid(7) = 0 [match], getppid() = 1 [run]
wrapped_other: setgid(7) ; diverge ; getpid(), setgid(8)

skipped: open("/etc/skip", 0, 0) = 5, read(5, "x", 10), close(5), getpid() = 9
	; ok ; getpid() = 9 [default]
not_skipped: open("/etc/other", 0, 0) = 5, read(5, "x", 10), close(5)
	; diverge ; getpid()

log: getpid() = 4, getppid() = 5
	; ok ;
	getpid() = 4, open("log.txt", 0x441, 0600) = 1001 [run], write(1001, "hello", 5) = 5 [run],
	getppid() = 5 [default]
log_shared: getpid() = 4
	; diverge ; open("log.txt", 0x441, 0600) = 1001, write(1002, "hello", 5) = 5

count: write(1, "a longer text", 13) = 13 ; ok ; write(1, "short", 5) = 5 [match]

begin: getpid() = 1
	; ok ;
	mprotect(1, 2, 3) [run], mprotect(1, 2, 3) [run], mprotect(4, 5, 6) [run],
	munmap(1, 2) [run], getpid() = 1 [default]
begin_once: getpid() = 1 ; ok ; mprotect(1, 2, 3) [run], munmap(1, 2) [run], getpid() = 1
