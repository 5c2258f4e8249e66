/* What the program wants of each signal, and what the kernel is told. */
#ifndef MVE_INSIDE_ACTIONS_H
#define MVE_INSIDE_ACTIONS_H

#include "engine/inside/gate/thread.h"

/* A follower's process: it hears no signal of the world. */
extern bool signals_are_deaf;

bool is_handler(uint64_t handler);
bool on_stack(const struct altstack *a, uint64_t sp);
long kernel_action(int sig, const struct action *a);
/* What there is when we come: of an execve "ignored" alone. */
void actions_learn(struct sighand *s);
/* The program has its own again; one that has not been learnt it still has. */
void actions_give_back(const struct sighand *s);
struct action action_for_kernel(int sig, const struct action *a);
void action_reset(struct thread *t, int sig);
void default_restore(int sig);
/* Tells its signals to followers. */
bool signal_leads(const struct thread *t);
/* With followers, a death of these is told to the monitor first. */
bool crash_signal(int sig);

/* Of a program or a thread that begins; a fork's child has it from its parent, all but the mask. */
void signals_start(struct thread *t);
void hidden_unblock(void);
void signals_deaf(struct thread *t);
void signals_hear(struct thread *t);
/* The same, while it waits for what it takes: when it leads it is done. */
void signals_hear_soon(struct thread *t);
void sighand_clear(struct sighand *s);

#endif
