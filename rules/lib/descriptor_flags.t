later: pipe2("fds", 0) = 0, F_GETFL(3, 3) = 0, F_SETFL(3, 4, 0x800) = 0, getpid() ; ok ; pipe2("fds", 0x80800) = 0 [match flags_pipe], getpid()
own: getpid() ; ok ; F_SETFD(5, 2, 1) = 0 [answer flags_own], getpid()
other: socket(2, 1, 0) = 3 ; diverge ; socket(2, 2, 0)
opened: openat(-100, "f", 0, 0) = 3 ; ok ; openat(-100, "f", 0x80900, 0) = 3 [match flags_openat]
written: openat(-100, "f", 0, 0) = 3 ; diverge ; openat(-100, "f", 1, 0)
