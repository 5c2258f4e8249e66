then: write(1, "hello", 5) = 5 ; ok ; write(1, "<hello>!", 8) = 8 [match shout]
# The first rule's action returns early; the second does not see a `<`.
then_stops: write(1, "", 0) = 0 ; ok ; write(1, "", 0) = 0 [match shout]
groups: sendto(3, "get 12", 6, 0, -, 0) = 6 ; ok ; sendto(3, "other", 5, 0, -, 0) = 15 [match http]
no_match: sendto(3, "get", 3, 0, -, 0) = 3 ; ok ; sendto(3, "get", 3, 0, -, 0) = 3 [default]
prefix: sendto(4, "please do", 9, 0, -, 0) ; ok ; sendto(5, "x", 1, 0, -, 0) = 1 [match polite]
search: sendto(4, "do it PLEASE", 12, 0, -, 0) ; ok ; sendto(5, "x", 1, 0, -, 0) = 1 [match polite]
exact: sendto(4, "thanks a lot", 12, 0, -, 0) = 12 ; diverge ; sendto(5, "x", 1, 0, -, 0)
numbers: lseek(7, 16, 0xffffffff) = 16 ; ok ; lseek(7, 1, 2) = 17 [match numbers]
guard_ret: lseek(7, 16, 0xffffffff) = -9 ; diverge ; lseek(7, 1, 2)

file: openat(-100, "f", 0, 0) = 9, read(9, "abc", 10), close(9) = 0, uname(_) = 0
	; ok ;
	open("f", 0, 0) = 1005 [run file], getppid() = 1 [run], getppid() = 1 [run],
	pread64(1005, "abc", 10, 0) = 3 [run], getpid() = 4 [run], getpid() = 4 [run],
	uname(_) = 0 [default]
file_no_stars: openat(-100, "f", 0, 0) = 9, read(9, "abc", 10), close(9) = 0
	; ok ; open("f", 0, 0) = 1005 [run file], pread64(1005, "abc", 10, 0)
file_other_fd: openat(-100, "f", 0, 0) = 9, read(8, "abc", 10), close(9) = 0
	; diverge ; open("f", 0, 0) = 1005
file_other_path: openat(-100, "f", 0, 0) = 9, read(9, "abc", 10), close(9) = 0
	; diverge ; open("g", 0, 0) = 1005
file_mine: openat(-100, "f", 0, 0) = 9, read(9, "abc", 10), close(9) = 0
	; diverge ; open("f", 0, 0) = 1005, pread64(1006, "abc", 10, 0) = 3

wrap: recvfrom(3, "in", 9, 0, -, -), poll(_, 1, 5) = 1
	; ok ;
	socket(2, 1, 0) = 77 [answer input_wrap], recvfrom(3, "in", 9, 0, -, -) = 2 [match],
	read(9, "xyz", 10) = 3 [answer], poll(_, 1, 6) = 1 [match]
wrap_undecided: recvfrom(3, "in", 9, 0, -, -)
	; ok ; recvfrom(3, "in", 9, 0, -, -) = 2 [default]

answer: getpid() ; ok ; sendto(8, "log this", 8, 0, -, 0) = 8 [answer answer], getpid()
answer_read: getpid() ; ok ; recvfrom(8, "$x", 8, 0, -, -) = 2 [answer answer_read], getpid()
clock: clock_gettime(1, _), getpid() ; ok ; getpid()
versions_unknown: getuid() = 5 ; ok ; getuid() = 5 [default]
process: umask(1) = 022 ; ok ; umask(3) = 022 [match whole]
variant: fcntl(3, 4, 2048) = 0 ; ok ; fcntl(3, 3, 0) = 2 [run variant], fcntl(3, 4, 2048) = 0 [match variant]
other_variant: fcntl(3, 2, 1) = 0 ; ok ; fcntl(3, 2, 1) = 0 [default]
two: creat("x", 0600) = 3 ; ok ; getuid() = 0 [run two]
two_b: open("b", 1, 0600) = 3 ; ok ; getuid() = 0 [run two]
two_c: open("c", 1, 0600) = 3 ; diverge ; getuid() = 0
used: getgid() = 3 ; ok ; getegid() = 3 [run used]
told: getpgrp() = 3, getppid() ; ok ; getppid() [default]
ahead: getsid(9) = 3 ; ok ; getsid(0) = 0 [answer ahead], getpgid(0) = 0 [answer ahead], getsid(0) = 0 [answer ahead], getpgid(0) = 0, getsid(9) = 3 [default]
