static int64_t log_fd = -1;
