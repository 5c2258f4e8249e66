both: openat(-100, "/proc/77/stat", 0, 0) = 9, read(9, "77 (x)", 4096) = 6, close(9) = 0
	; ok ; openat(-100, "/proc/self/stat", 0, 0) = 9 [match kernel_line_both], read(9, "77 (x)", 4095) = 6 [match], close(9) = 0 [match]
leaders: openat(-100, "/proc/sys/vm/x", 0, 0) = 9, read(9, "1", 4096) = 1, close(9) = 0, getpid() ; ok ; getpid()
own: getpid() ; ok ; openat(-100, "/sys/x", 0, 0) = 1000 [run kernel_own], read(1000, _, 99) = 1 [run], close(1000) = 0 [run], getpid()
other: openat(-100, "/etc/passwd", 0, 0) = 9, read(9, "1", 4096) = 1, close(9) = 0, getpid() ; diverge ; getpid()
sought: getpid() ; ok ; openat(-100, "/sys/x", 0, 0) = 1000 [run kernel_own], lseek(1000, 5, 0) = 5 [run own_seek], close(1000) = 0 [run], getpid()
leaders_sought: openat(-100, "f", 0, 0) = 4, getpid() ; diverge ; openat(-100, "f", 0, 0) = 4, lseek(4, 5, 0)
