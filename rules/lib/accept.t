by_4: accept(6, "address", _) = 9, getpid() ; ok ; accept4(6, "address", _, 0x80800) = 9 [answer accept_by_4], getpeername(9, "address", _) = 0 [answer own_peer], getpid()
by_3: accept4(6, "address", _, 0) = -11 ; ok ; accept(6, _, _) = -11 [answer accept_by_3]
other: accept(6, "address", _) = 9 ; diverge ; accept4(7, "address", _, 0)
