# A second eventfd of each worker.
returns: @old eventfd2(0, 2048) = 6, epoll_create1(0x80000) = 7, epoll_ctl(7, 1, 6, "e") = 0, getpid()
	; ok ; eventfd2(0, 2048) = 6 [default], eventfd2(0, 2048) = 1000 [run returns], epoll_create1(0x80000) = 7,
	epoll_ctl(7, 1, 6, _) = 0, epoll_ctl(7, 1, 1000, _) = 0 [answer returns_watched], getpid()
no_returns: @new eventfd2(0, 2048) = 6, eventfd2(0, 2048) = 7, epoll_create1(0x80000) = 8, epoll_ctl(8, 1, 6, "e") = 0,
	epoll_ctl(8, 1, 7, "e") = 0, getpid()
	; ok ; eventfd2(0, 2048) = 6 [match no_returns], epoll_create1(0x80000) = 8, epoll_ctl(8, 1, 6, _) = 0, getpid()
other: @new eventfd2(0, 2048) = 6, epoll_create1(0x80000) = 8, epoll_ctl(8, 1, 9, "e") = 0 ; diverge
	; eventfd2(0, 2048) = 6, epoll_create1(0x80000) = 8, getpid()
version: accept4(5, _, _, _) = 9, sendmsg(9, "VERSION 1.6.18\r\n", 0) = 16 ; ok ;
	accept4(5, _, _, _) = 9, sendmsg(9, "VERSION 1.6.38-beta\r\n", 0) = 21
