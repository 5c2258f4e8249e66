// Their epoll sets.
epoll: @old epoll_create(4097) = 6, F_SETFD(6, 2, 1) = 0, rt_sigaction(17, _, _, 8) = 0, epoll_ctl(6, 1, 3, "e") = 0
	; ok ; epoll_create1(0x80000) = 6 [answer epoll], epoll_ctl(6, 1, 3, _) = 0
epoll_back: @new epoll_create1(0x80000) = 6, epoll_ctl(6, 1, 3, "e") = 0
	; ok ; epoll_create(4097) = 6 [answer epoll_back], F_SETFD(6, 2, 1) = 0, rt_sigaction(17, _, _, 8) = 0, epoll_ctl(6, 1, 3, _) = 0
pipe: @old getpid() ; ok ; pipe2(_, 0x80000) = -24 [answer pipe], pipe2(_, 0) = -24 [answer pipe], getpid()
pipe_back: @new pipe2("\x06\0\0\0\x07\0\0\0", 0x80000) = 0, F_SETPIPE_SZ(7, 1031, 262144) = 262144, getpid(), close(6), close(7)
	; ok ; getpid()
request: @old accept4(3, _, _, 0) = 7, read(7, "GET", 8191) = 3 ; ok ; accept4(3, _, _, 0) = 7, read(7, "GET", 8192) = 3 [match request]
request_full: @new accept4(3, _, _, 0) = 7, read(7, "…", 8192) = 8192 ; diverge ; accept4(3, _, _, 0) = 7, read(7, _, 8191)
