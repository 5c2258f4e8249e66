reply: @old writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n", 1) = 39
	; ok ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n", 1) = 39 [match version]
back: @new writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n", 1) = 39
	; ok ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n", 1) = 39 [match version_back]
fork: @old clone(0, -, -, -, -) = 7 ; ok ; rt_sigprocmask(0, "\xff\xff\xff\xff\xff\xff\xff\xff", _, 8) = 0 [run], clone(0, -, -, -, -) = 7
