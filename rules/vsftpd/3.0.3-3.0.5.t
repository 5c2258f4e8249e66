greeting: @old write(0, "220 (vsFTPd 3.0.3)\r\n", 20) = 20 ; ok ; write(0, "220 (vsFTPd 3.0.5)\r\n", 20) = 20 [match version]
back: @new write(0, "220 (vsFTPd 3.0.5)\r\n", 20) = 20 ; ok ; write(0, "220 (vsFTPd 3.0.3)\r\n", 20) = 20 [match version_back]
other: @old write(0, "220 (vsFTPd 3.0.3)\r\n", 20) = 20 ; diverge ; write(0, "221 (vsFTPd 3.0.5)\r\n", 20)
