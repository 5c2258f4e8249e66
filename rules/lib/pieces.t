fewer: write(5, "ab", 2) = 2, write(5, "cd", 2) = 2 ; ok ; writev(5, "abcd", 1) = 2 [answer covers_by_writev], writev(5, "cd", 1) = 2 [answer covers_by_writev]
more: writev(5, "abcd", 2) = 4, getpid() ; ok ; write(5, "ab", 2) = 2 [answer begins_by_write], write(5, "cd", 2) = 2 [answer goes_on_write], getpid()
cut: write(5, "abcd", 4) = 3 ; ok ; write(5, "abcd", 4) = 3 [match]
full: write(5, "abcd", 4) = -11 ; ok ; writev(5, "abcdefg", 2) = -11 [answer covers_by_writev]
other: write(5, "abcd", 4) = 4 ; diverge ; writev(5, "abcx", 1)
other_rest: writev(5, "abcd", 2) = 4, getpid() ; diverge ; write(5, "ab", 2) = 2, write(5, "cx", 2)
other_fd: writev(5, "abcd", 2) = 4, getpid() ; diverge ; write(5, "ab", 2) = 2, write(6, "cd", 2)
