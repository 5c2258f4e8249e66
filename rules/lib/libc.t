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
