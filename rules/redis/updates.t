memory: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa", 26) = 26, write(6, "more", 4) = 4
	; ok ; write(6, "REDIS0010\xfa\x08used-mem\xc2efgh\xfa", 26) = 26 [match head], write(6, "more", 4) = 4 [default]
other: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa", 26) = 26, getpid()
	; diverge ; write(6, "REDIS0011\xfa\x08used-mem\xc2efgh\xfa", 26) = 26
checksum: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa", 26) = 26, write(6, "k\xff12345678", 10) = 10, fsync(6) = 0
	; ok ; write(6, "REDIS0010\xfa\x08used-mem\xc2efgh\xfa", 26) = 26, write(6, "k\xff87654321", 10) = 10 [match end], fsync(6) = 0
value: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa", 26) = 26, write(6, "k\xff12345678", 10) = 10, fsync(6) = 0
	; diverge ; write(6, "REDIS0010\xfa\x08used-mem\xc2efgh\xfa", 26) = 26, write(6, "l\xff87654321", 10) = 10
cut: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa", 26) = 26, write(6, "k\xff123456", 8) = 8, write(6, "78", 2) = 2, fsync(6) = 0
	; ok ; write(6, "REDIS0010\xfa\x08used-mem\xc2efgh\xfa", 26) = 26, write(6, "k\xff876543", 8) = 8, write(6, "21", 2) = 2, fsync(6) = 0
at_once: write(6, "REDIS0010\xfa\x08used-mem\xc2abcd\xfa\xff12345678", 35) = 35, fsync(6) = 0
	; ok ; write(6, "REDIS0010\xfa\x08used-mem\xc2efgh\xfa\xff87654321", 35) = 35 [match end], fsync(6) = 0
file: write(7, "k\xff12345678", 10) = 10, fsync(7) = 0 ; diverge ; write(7, "k\xff87654321", 10) = 10
