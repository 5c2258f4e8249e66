served: @old read(9, "get                    a b\r\n", 16384) = 28, writev(7, "get                    a\r\nget                    b\r\n", 2) = 52
	; ok ; read(9, "get a b\r\n", 16384) = 9 [match squeezed], writev(7, "get a\r\nget b\r\n", 2) = 14 [match asked]
few: @old read(9, "get                 a b\r\n", 16384) = 25, getpid()
	; ok ; read(9, "get                 a b\r\n", 16384) = 25 [default], getpid()
another: @old writev(7, "get    a\r\n", 1) = 10 ; diverge ; writev(7, "get b\r\n", 1) = 7
short: @old writev(7, "get    a\r\n", 1) = 5 ; diverge ; writev(7, "get a\r\n", 1) = 7
refused: @new read(9, "get                    a b\r\n", 16384) = 28, sendmsg(9, "SERVER_ERROR malformed request\r\nSERVER_ERROR malformed request\r\nEND\r\n", 0) = 69
	; ok ; read(9, "gat\r\n", 16384) = 5 [match refused], sendmsg(9, "SERVER_ERROR parsing request\r\n", 0) = 30 [match refused]
other: @new read(9, "get                    a b\r\n", 16384) = 28, sendmsg(9, "SERVER_ERROR malformed request\r\nEND\r\n!", 0) = 38
	; diverge ; read(9, "get                    a b\r\n", 16384) = 28, sendmsg(9, "SERVER_ERROR parsing request\r\n", 0) = 30
