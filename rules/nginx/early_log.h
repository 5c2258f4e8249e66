/* Of 1.18's log before its configuration is read: the leader's descriptor. */
static int64_t early_log = -1;
