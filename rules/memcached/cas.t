# 99 is 102 here: what `gets` told, `cas` wants back.
learnt: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 99\r\nab\r\nEND\r\n", 0) = 25,
	read(9, "cas k 0 0 1 99\r\nx\r\nget k\r\n", 99) = 26, getpid()
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 102\r\nab\r\nEND\r\n", 0) = 26 [match cas_replies],
	read(9, "cas k 0 0 1 102\r\nx\r\nget k\r\n", 99) = 27 [match cas_requests], getpid()
narrower: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 1000\r\nab\r\nEND\r\n", 0) = 27, read(9, "cas k 0 0 1 1000 noreply\r\nx\r\n", 99) = 29
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 7\r\nab\r\nEND\r\n", 0) = 24, read(9, "cas k 0 0 1 0007 noreply\r\nx\r\n", 99) = 29
unknown: accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 1234\r\nx\r\n", 99) = 21 ; ok ;
	accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 0001\r\nx\r\n", 99) = 21
too_long: accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 111111111111111111111\r\nx\r\n", 99) = 38 ; ok ;
	accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 999999999999999999999\r\nx\r\n", 99) = 38
no_number: accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 x\r\nx\r\n", 99) = 18 ; ok ; accept4(5, _, _, _) = 9, read(9, "cas k 0 0 1 x\r\nx\r\n", 99) = 18

# Several in one piece, and pieces of one.
several: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 5\r\nx\r\nVALUE b 0 1 6\r\nx\r\nEND\r\nSTORED\r\n", 0) = 49,
	read(9, "cas a 0 0 1 6\r\nx\r\ncas b 0 0 1 5\r\nx\r\n", 99) = 36
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 8\r\nx\r\nVALUE b 0 1 7\r\nx\r\nEND\r\nSTORED\r\n", 0) = 49,
	read(9, "cas a 0 0 1 7\r\nx\r\ncas b 0 0 1 8\r\nx\r\n", 99) = 36
pieces: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 5\r\nx\r\nEND\r\n", 0) = 13, sendmsg(9, "\r\nx\r\nEND\r\n", 0) = 10,
	read(9, "cas a 0 0 1 ", 99) = 12, read(9, "5", 99) = 1, read(9, "\r\nx\r\n", 99) = 5
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 88\r\nx\r\nEND\r\n", 0) = 14, sendmsg(9, "\r\nx\r\nEND\r\n", 0) = 10,
	read(9, "cas a 0 0 1 ", 99) = 12, read(9, _, 99) = -11, read(9, "88\r\nx\r\n", 99) = 7
# Data is no line.
data: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 5\r\nx\r\nEND\r\n", 0) = 23, read(9, "set k 0 0 17\r\ncas a 0 0 1 5\r\nab\r\ncas a 0 0 1 5\r\nx\r\n", 99) = 51
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 8\r\nx\r\nEND\r\n", 0) = 23, read(9, "set k 0 0 17\r\ncas a 0 0 1 5\r\nab\r\ncas a 0 0 1 8\r\nx\r\n", 99) = 51
data_only: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 5\r\nx\r\nEND\r\n", 0) = 23, read(9, "set k 0 0 15\r\n", 99) = 14,
	read(9, "cas a 0 0 1 5\r\n", 17) = 15, read(9, "\r\ncas a 0 0 1 5\r\nx\r\n", 99) = 20
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VALUE a 0 1 8\r\nx\r\nEND\r\n", 0) = 23, read(9, "set k 0 0 15\r\n", 99) = 14 [match cas_requests],
	read(9, "cas a 0 0 1 5\r\n", 17) = 15 [match cas_data], read(9, "\r\ncas a 0 0 1 8\r\nx\r\n", 99) = 20
meta: accept4(5, _, _, _) = 9, sendmsg(9, "VA 1 t-1 c5\r\nx\r\nHD c6\r\n", 0) = 23, read(9, "ms k 1 c C5\r\nx\r\nmd j C6 q\r\n", 99) = 27
	; ok ; accept4(5, _, _, _) = 9, sendmsg(9, "VA 1 t-1 c7\r\nx\r\nHD c8\r\n", 0) = 23, read(9, "ms k 1 c C7\r\nx\r\nmd j C8 q\r\n", 99) = 27
binary: accept4(5, _, _, _) = 9, read(9, "\x80cas a 0 0 1 5\r\n", 99) = 16 ; ok ; accept4(5, _, _, _) = 9, read(9, "\x80cas a 0 0 1 5\r\n", 99) = 16

# All else is the same.
another: accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 9\r\nab\r\nEND\r\n", 0) = 24 ; diverge ;
	accept4(5, _, _, _) = 9, sendmsg(9, "VALUE k 7 2 9\r\nac\r\nEND\r\n", 0)
counter: accept4(5, _, _, _) = 9, sendmsg(9, "99\r\n", 0) = 4 ; diverge ; accept4(5, _, _, _) = 9, sendmsg(9, "98\r\n", 0)
longer: accept4(5, _, _, _) = 9, sendmsg(9, "END\r\n", 0) = 5 ; diverge ; accept4(5, _, _, _) = 9, sendmsg(9, "END\r\nEND\r\n", 0)
