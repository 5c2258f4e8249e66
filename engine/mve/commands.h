/*
 * The sub-commands, a file each; main.c has the table.
 */
#ifndef MVE_COMMANDS_H
#define MVE_COMMANDS_H

int cmd_run(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_go(int argc, char **argv);
int cmd_bisect(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_follow(int argc, char **argv);
int cmd_follow_from(int argc, char **argv);	/* mve follow --from */
int cmd_attach(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_drop(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_promote(int argc, char **argv);
int cmd_rules(int argc, char **argv);
int cmd_update(int argc, char **argv);
int cmd_commit(int argc, char **argv);
int cmd_abort(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
