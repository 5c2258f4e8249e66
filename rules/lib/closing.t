// As 6.0 of Redis follows 7.0: descriptor 9 is given again before it is closed here.
late: accept4(6, "a", _, 0) = 9, close(9), accept4(6, "b", _, 0) = 9, setsockopt(9, 6, 1, _, 4), epoll_ctl(5, 1, 9, _), getpeername(9, _, _), accept4(6, _, _, 0) = 10, setsockopt(10, 6, 1, _, 4), epoll_ctl(5, 1, 10, _), accept4(6, _, _, 0) = -11, read(8, "x", 9), epoll_wait(5, "", 10, 0) = 0
	; ok ; accept(6, "a", _) = 9 [answer accept_by_3], accept(6, _, _) = -11 [answer waits_by_3], read(8, "x", 9) = 1,
	epoll_ctl(5, 2, 9, -) = 0 [answer closing_own_watch], close(9) = 0 [answer closing_own],
	epoll_wait(5, "\1\0\0\0\6\0\0\0\0\0\0\0", 10, 0) = 1 [answer waited],
	accept(6, "b", _) = 9 [answer waited_by_3], setsockopt(9, 6, 1, _, 4) = 0, epoll_ctl(5, 1, 9, _) = 0, getpeername(9, "b", _) = 0,
	accept(6, _, _) = 10 [answer waited_by_3], setsockopt(10, 6, 1, _, 4) = 0, epoll_ctl(5, 1, 10, _) = 0,
	accept(6, _, _) = -11 [answer waited_end_3], epoll_wait(5, "", 10, 0) = 0 [default]
early: accept(6, "a", _) = 11, getpid(), close(11), getpid() ; ok ; accept4(6, "a", _, 0) = 11, close(11) = 0 [answer closing_own], getpid(), getpid()
