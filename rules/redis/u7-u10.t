refused: @new read(9, "*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\nx\r\n", 16384) = 40,
	write(9, "-ERR Bad data format\r\n", 22) = 22
	; ok ; read(9, "RESTORE\r\n", 16384) = 9 [match no_dump], write(9, "-ERR wrong\r\n", 12) = 12 [match no_dump]
taken: @new read(9, "*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\nx\r\n", 16384) = 40, write(9, "+OK\r\n", 5) = 5
	; diverge ; read(9, "*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\nx\r\n", 16384) = 40, write(9, "-ERR\r\n", 6)
