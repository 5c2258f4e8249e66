maps: uname(_) ; ok ;
	openat(-100, "/proc/self/maps", 0, 0) = 1000 [run san_open],
	read(1000, "5555", 4096) = 4 [run own_read], close(1000) [run own_close],
	personality(0xffffffff) [run], uname(_) [default]
exe: uname(_) ; ok ; readlink("/proc/self/exe", _, 4096) = 9 [run san_readlink], uname(_)
limits: uname(_) ; ok ; prlimit64(0, 3, -, _) [run san_limits], uname(_)
# Setting a limit is no look.
set_limit: uname(_) ; diverge ; prlimit64(0, 3, "1234567812345678", -)
report: uname(_) ; diverge ; openat(-100, "/tmp/asan.log", 0x241, 0600) = 1000
