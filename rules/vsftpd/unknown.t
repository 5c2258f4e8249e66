unknown: @old recvfrom(0, "STOU\r\n", 4096, 2, -, -), read(0, "STOU\r\n", 6), write(0, "500 Unknown command.\r\n", 22)
	; ok ; recvfrom(0, "FOOBAR\r\n", 4096, 2, -, -) = 8 [match unknown_command], read(0, "FOOBAR\r\n", 8) = 8 [match unknown_command], write(0, "500 Unknown command.\r\n", 22) = 22 [match unknown_command]
