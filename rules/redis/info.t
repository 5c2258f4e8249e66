info: write(7, "$40\r\n# Memory\r\nused_memory:1000\r\nrole:master\r\n\r\n", 48) = 48
	; ok ; write(7, "$39\r\n# Memory\r\nused_memory:999\r\nrole:master\r\n\r\n", 47) = 47 [match info]
role: write(7, "$40\r\n# Memory\r\nused_memory:1000\r\nrole:master\r\n\r\n", 48) = 48
	; diverge ; write(7, "$40\r\n# Memory\r\nused_memory:1001\r\nrole:slaves\r\n\r\n", 48) = 48
other: write(7, "$4\r\nabcd\r\n", 10) = 10 ; diverge ; write(7, "$4\r\nabce\r\n", 10) = 10
sent: write(7, "$40\r\nused_memory:1\r\ntotal_net_output_bytes:100\r\n\r\n", 50) = 50
	; ok ; write(7, "$39\r\nused_memory:1\r\ntotal_net_output_bytes:99\r\n\r\n", 49) = 49 [match info]
freed: write(7, "$40\r\nused_memory:1\r\nlazyfree_pending_objects:10\r\n\r\n", 51) = 51
	; ok ; write(7, "$39\r\nused_memory:1\r\nlazyfree_pending_objects:9\r\n\r\n", 50) = 50 [match info]
text: write(7, "=25\r\ntxt:used_memory:1000\r\n\r\n", 30) = 30
	; diverge ; write(7, "=24\r\ntxt:used_memory:999\r\n\r\n", 29) = 29
text_later: write(7, "=38\r\ntxt:# Memory\r\nused_memory:1000\r\n\r\n", 40) = 40
	; ok ; write(7, "=37\r\ntxt:# Memory\r\nused_memory:999\r\n\r\n", 39) = 39 [match info]
piped: write(7, "+PONG\r\n$40\r\n# Memory\r\nused_memory:1000\r\nrole:master\r\n\r\n", 55) = 55
	; ok ; write(7, "+PONG\r\n$39\r\n# Memory\r\nused_memory:999\r\nrole:master\r\n\r\n", 54) = 54 [match info]
piped_other: write(7, "+PONG\r\n$40\r\nused_memory:1000\r\n\r\n", 35) = 35
	; diverge ; write(7, "+PING\r\n$39\r\nused_memory:999\r\n\r\n", 34) = 34
