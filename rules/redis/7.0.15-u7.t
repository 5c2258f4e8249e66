refused: @new read(9, "*4\r\n$3\r\nACL\r\n$7\r\nSETUSER\r\n$1\r\nu\r\n$3\r\n%~x\r\n", 16384) = 43,
	write(9, "-ERR Error in ACL SETUSER modifier '%~x': Syntax error\r\n", 56) = 56
	; ok ; read(9, "ACL\r\n", 16384) = 5 [match no_selector], write(9, "-ERR wrong\r\n", 12) = 12 [match no_selector]
taken: @new read(9, "*4\r\n$3\r\nACL\r\n$7\r\nSETUSER\r\n$1\r\nu\r\n$3\r\n%R~\r\n", 16384) = 43, write(9, "+OK\r\n", 5) = 5
	; diverge ; read(9, "*4\r\n$3\r\nACL\r\n$7\r\nSETUSER\r\n$1\r\nu\r\n$3\r\n%R~\r\n", 16384) = 43, write(9, "-ERR\r\n", 6)
