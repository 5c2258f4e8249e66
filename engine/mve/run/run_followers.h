/*
 * The options of mve run that are about followers: each is about the -f before
 * it.  All give 0, or an exit code after a message.
 */
#ifndef MVE_RUN_FOLLOWERS_H
#define MVE_RUN_FOLLOWERS_H

#include "engine/outside/monitor/options.h"

int follower_add(struct run_options *o, const char *command);
int follower_name(struct run_options *o, const char *name);
int follower_strict(struct run_options *o);
int follower_again(struct run_options *o);
int follower_policy(struct run_options *o, const char *text);
int follower_on_finding(struct run_options *o, const char *command);
int follower_rules(struct run_options *o, const char *path);
int follower_older(struct run_options *o);
/* Before the first -f it is about the leader. */
int follower_release(struct run_options *o, const char *name);
int follower_map(struct run_options *o, char *text);
/* Gives names and commands to all, and checks them against each other. */
int followers_complete(struct run_options *o);

#endif
