later: socket(2, 1, 6) = 6, setsockopt(6, 1, 2, _, 4), bind(6, "here", 4), listen(6, 511), epoll_ctl(5, 1, 6, _), getpid()
	; ok ; getpid(), socket(2, 0x80801, 6) = 6 [answer listens], setsockopt(6, 1, 2, _, 4) = 0, bind(6, "here", 4) = 0, listen(6, 511) = 0, epoll_ctl(5, 1, 6, _) = 0
other: socket(2, 1, 6) = 6, bind(6, "here", 4) ; diverge ; socket(2, 1, 6) = 6, bind(6, "there", 5)
same_time: socket(2, 1, 6) = 7, bind(7, "abcd", 4) ; ok ; socket(2, 1, 6) = 7 [answer listens], bind(7, "abcd", 4) = 0
