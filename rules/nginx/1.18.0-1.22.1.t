reply: @old writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.18.0\r\n", 1) = 39
	; ok ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n", 1) = 39 [match version]
page: @old writev(4, "HTTP/1.1 404 Not Found\r\nServer: nginx/1.18.0\r\n\r\n<center>nginx/1.18.0<", 1) = 70
	; ok ; writev(4, "HTTP/1.1 404 Not Found\r\nServer: nginx/1.22.1\r\n\r\n<center>nginx/1.22.1<", 1) = 70
other_word: @old writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.18.0\r\n", 1) = 39
	; diverge ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.18.1\r\n", 1)
cut: @old writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.18.0\r\n", 1) = 39
	; diverge ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r", 1)
back: @new writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\n", 1) = 39
	; ok ; writev(4, "HTTP/1.1 200 OK\r\nServer: nginx/1.18.0\r\n", 1) = 39 [match version_back]
log: @old openat(-100, "/var/log/nginx/error.log", 1089, 0644) = 3, getpid(), dup2(4, 2) = 2, close(3), getuid()
	; ok ; getpid(), dup2(4, 2) = 2, getuid()
reorder: @old getpid() ; ok ; epoll_ctl(8, 2, 6, _) = 0 [answer reorder], epoll_ctl(8, 1, 6, _) = 0 [answer reorder], getpid()
no_reorder: @new epoll_ctl(8, 2, 6, _), epoll_ctl(8, 1, 6, "e"), getpid() ; ok ; getpid()
other_socket: @new epoll_ctl(8, 2, 6, _), epoll_ctl(8, 1, 7, "e"), getpid() ; diverge ; getpid()
