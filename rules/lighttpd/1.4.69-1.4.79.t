tried: socket(2, 1, 6) = 3, listen(3, 1024), socket(2, 0x80801, 0) = 5, F_GETFL(5, 3) = 0x802, close(5), getpid()
	; ok ; socket(2, 0x80801, 0) = 0 [answer tried_own], F_GETFL(0, 3) = 0x802 [answer tried_own], close(0) = 0 [answer tried_own],
	socket(2, 0x80801, 6) = 3, listen(3, 4096), getpid()
