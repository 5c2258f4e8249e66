own: getpid() ; ok ;
	openat(-100, "/proc/self/task/77/comm", 2, 0) = 1000 [run], write(1000, "mc-log", 6) = 6 [run], close(1000) = 0 [run],
	getpid()
leaders: openat(-100, "/proc/self/task/77/comm", 2, 0) = 6, write(6, "mc-log", 6) = 6, close(6) = 0, getpid()
	; ok ; getpid()
other_file: getpid() ; diverge ; openat(-100, "/proc/self/task/77/status", 2, 0) = 1000
