// A reply's fields have another order, and a second ends in between.
reply: writev(7, "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nServer: lighttpd/1.4.59\r\n\r\nhello\n", 1) = 61
	; ok ; writev(7, "HTTP/1.1 200 OK\r\nB: 2\r\nA: 1\r\nServer: lighttpd/1.4.69\r\n\r\nhello\n", 1) = 61 [match reply]
reply_back: writev(7, "HTTP/1.1 200 OK\r\nA: 1\r\nServer: lighttpd/1.4.69\r\n\r\n", 1) = 50
	; ok ; writev(7, "HTTP/1.1 200 OK\r\nServer: lighttpd/1.4.59\r\nA: 1\r\n\r\n", 1) = 50 [match reply]
body: writev(7, "HTTP/1.1 200 OK\r\nServer: lighttpd/1.4.59\r\n\r\nhello\n", 1) = 49
	; diverge ; writev(7, "HTTP/1.1 200 OK\r\nServer: lighttpd/1.4.69\r\n\r\nhallo\n", 1)
field: writev(7, "HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", 1) = 25 ; diverge ; writev(7, "HTTP/1.1 200 OK\r\nA: 2\r\n\r\n", 1)
more: writev(7, "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n", 1) = 31 ; diverge ; writev(7, "HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", 1)
status: writev(7, "HTTP/1.1 200 OK\r\n\r\n", 1) = 19 ; diverge ; writev(7, "HTTP/1.1 404 OK\r\n\r\n", 1)
second: writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:23:00 GMT\r\n\r\n", 1) = 57
	; ok ; writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:22:59 GMT\r\n\r\n", 1) = 57
midnight: writev(7, "HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 00:00:00 GMT\r\n\r\n", 1) = 57
	; ok ; writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 23:59:59 GMT\r\n\r\n", 1) = 57
seconds: writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:23:00 GMT\r\n\r\n", 1) = 57
	; diverge ; writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:22:54 GMT\r\n\r\n", 1)
day: writev(7, "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 22:23:00 GMT\r\n\r\n", 1) = 57
	; diverge ; writev(7, "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 22:23:00 GMT\r\n\r\n", 1)
log: write(4, "2026-11-21 22:22:29: server.c.1513) server started (lighttpd/1.4.59)\n", 69) = 69
	; ok ; write(4, "2026-11-21 22:22:28: (server.c.1704) server started (lighttpd/1.4.69)\n", 70) = 70 [match log]
log_other: write(4, "2026-11-21 22:22:29: server.c.1513) no file\n", 44) = 44
	; diverge ; write(4, "2026-11-21 22:22:28: (server.c.1704) no fila\n", 45)
// Connections are served in another order, and files are each version's own.
turns: accept4(3, _, _, 0) = 7, accept4(3, _, _, 0) = 8, read(7, "a", 9) = 1, write(7, "A", 1) = 1, read(8, "b", 9) = 1, write(8, "B", 1) = 1
	; ok ; accept4(3, _, _, 0) = 7, accept4(3, _, _, 0) = 8, read(8, "b", 9) = 1, write(8, "B", 1), read(7, "a", 9) = 1, write(7, "A", 1)
turns_other: accept4(3, _, _, 0) = 7, accept4(3, _, _, 0) = 8, read(7, "a", 9) = 1, write(7, "A", 1) = 1, read(8, "b", 9) = 1, write(8, "B", 1) = 1
	; diverge ; accept4(3, _, _, 0) = 7, accept4(3, _, _, 0) = 8, read(8, "b", 9) = 1, write(8, "A", 1)
files: openat(-100, "f", 0x80900, 0) = 9, pread64(9, "x", 1, 0) = 1, accept4(3, _, _, 0) = 7, sendfile(7, 9, _, 5) = 5, close(9), getpid()
	; ok ; accept4(3, _, _, 0) = 7, openat(-100, "f", 0x80900, 0) = 1000 [run own_file], sendfile(7, 1000, _, 5) = 5 [match file_sent], getpid(), close(1000) = 0 [run own_file_close]
