# The follower loads a library that the leader does not have.
follower: getpid() ; ok ;
	openat(-100, "/lib/x86_64-linux-gnu/libz.so.1", 0, 0) = 1000 [run libc_open],
	read(1000, "ELF", 832) = 3 [run own_read], close(1000) = 0 [run own_close], getpid() [default]
follower_other_file: getpid() ; diverge ; openat(-100, "/etc/passwd", 0, 0) = 1000
follower_shared: getpid() ; diverge ; read(3, "x", 9)

leader: openat(-100, "/lib/x86_64-linux-gnu/libz.so.1", 0, 0) = 3, read(3, "ELF", 832),
	newfstatat(3, "", _, 0), close(3), getpid()
	; ok ; getpid() [default]
leader_notes: openat(-100, "/usr/lib/x86_64-linux-gnu/libc.so.6", 0, 0) = 3, read(3, "ELF", 832),
	pread64(3, _, 784, 64), newfstatat(3, "", _, 0), pread64(3, _, 784, 64), close(3), getpid()
	; ok ; getpid() [default]
leader_missing: openat(-100, "/lib/glibc-hwcaps/libz.so.1", 0, 0) = -2, getpid() ; ok ; getpid()
leader_other_file: openat(-100, "/etc/passwd", 0, 0) = 3, getpid() ; diverge ; getpid()
both: openat(-100, "/etc/ld.so.cache", 0, 0) = 3, getpid()
	; ok ; openat(-100, "/etc/ld.so.cache", 0, 0) = 3 [default], getpid()

# The same look by another call.
fstat: fstat(3, "st") = 0, close(3) ; ok ; newfstatat(3, "", "st", 0x1000) = 0 [answer libc_fstat], close(3)
fstat_fails: fstat(3, _) = -9, close(3) ; ok ; newfstatat(3, "", _, 0x1000) = -9, close(3)
fstat_other: fstat(3, "st") = 0, close(4) ; diverge ; newfstatat(4, "", "st", 0x1000) = 0 [answer], close(4)
fstatat: newfstatat(3, "", "st", 0x1000) = 0 ; ok ; fstat(3, "st") = 0 [answer libc_fstatat]
stat: stat("f", "st") = 0 ; ok ; newfstatat(-100, "f", "st", 0) = 0 [answer libc_stat]
statat: newfstatat(-100, "f", "st", 0) = 0 ; ok ; stat("f", "st") = 0 [answer libc_statat]
lstat: lstat("f", "st") = 0 ; ok ; newfstatat(-100, "f", "st", 0x100) = 0 [answer libc_lstat]
lstatat: newfstatat(-100, "f", "st", 0x100) = 0 ; ok ; lstat("f", "st") = 0 [answer libc_lstatat]
