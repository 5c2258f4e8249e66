# The old version leads.
put: @old recvfrom(5, "PUT k v w\r\n", 512, 0, -, -) = 11, sendto(5, "OK\n", 3, 0, -, 0)
	; ok ;
	recvfrom(5, "PUT-string k v w\r\n", 512, 0, -, -) = 18 [match put],
	sendto(5, "OK\n", 3, 0, -, 0) = 3 [default]
put_read: @old read(5, "PUT k v\r\n", 512) ; ok ; read(5, "PUT-string k v\r\n", 512) = 16 [match put]
get: @old read(5, "GET k\r\n", 512) ; ok ; read(5, "GET k\r\n", 512) = 7 [default]
typed: @old read(5, "PUT-number k 1\r\n", 512), write(5, "ERROR unknown request\n", 22)
	; ok ;
	read(5, "bad-command\r\n", 512) = 13 [match unknown],
	write(5, "ERROR unknown request\n", 22) = 22
type: @old read(5, "TYPE k\r\n", 512) ; ok ; read(5, "bad-command\r\n", 512) = 13 [match unknown]
small_buffer: @old read(5, "PUT k v\r\n", 12) ; diverge ; read(5, _, 12)

# The new version leads.
put_string: @new read(5, "PUT-string k v\r\n", 512) ; ok ; read(5, "PUT k v\r\n", 512) = 9 [match put_string]
new_get: @new read(5, "GET k\r\n", 512) ; ok ; read(5, "GET k\r\n", 512) = 7 [default]
new_number: @new read(5, "PUT-number k 1\r\n", 512) ; ok ; read(5, "PUT-number k 1\r\n", 512) = 16 [default]

# In no stage none of them holds.
no_stage: read(5, "PUT k v\r\n", 512) ; ok ; read(5, "PUT k v\r\n", 512) = 9 [default]
error: @old read(5, _, 512) = -11 ; ok ; read(5, _, 512) = -11 [default]
