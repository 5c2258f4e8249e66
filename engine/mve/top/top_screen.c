/*
 * The terminal of mve top, by ncurses.
 *
 * Signals that end us are blocked but while we wait for a key: none can come
 * between looking and waiting, and the terminal is given back before they act.
 */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/mve/top/top.h"
#include "engine/outside/monitor/say.h"

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
#define ENDING (sizeof(ending) / sizeof(ending[0]))

static volatile sig_atomic_t ended_by;
static sigset_t waiting;	/* the mask while we wait */
static SCREEN *terminal;

static const struct {
	int key;
	enum top_ask ask;
} keys[] = {
	{ 'q', ASK_QUIT }, { 'Q', ASK_QUIT }, { 'p', ASK_PAUSE }, { 'j', ASK_NEXT },
	{ KEY_DOWN, ASK_NEXT }, { 'k', ASK_LAST }, { KEY_UP, ASK_LAST }, { 'd', ASK_DROP },
	{ 'P', ASK_PROMOTE }, { 'y', ASK_YES }, { KEY_RESIZE, ASK_SIZE }, { ERR, ASK_NOTHING },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void end_noted(int sig)
{
	ended_by = sig;
}

static void signals_take(void)
{
	struct sigaction act = { .sa_handler = end_noted };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	for (size_t i = 0; i < ENDING; i++) {
		sigaddset(&blocked, ending[i]);
		sigaction(ending[i], &act, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &waiting);
	for (size_t i = 0; i < ENDING; i++)
		sigdelset(&waiting, ending[i]);
	sigdelset(&waiting, SIGWINCH);
}

static bool refused(const char *why)
{
	say_error("mve top NAME --once prints one frame as text", "cannot use the terminal: %s",
		  why);
	return false;
}

bool screen_open(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return refused("standard input or output is none");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return refused(getenv("TERM") ? "the TERM is not known" : "TERM is not set");
	signals_take();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	return true;
}

void screen_close(void)
{
	endwin();
	delscreen(terminal);
	if (!ended_by)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
	sigprocmask(SIG_SETMASK, &waiting, NULL);
}

unsigned screen_lines(void)
{
	return LINES > 1 ? (unsigned)LINES - 1 : 1;
}

static void line_show(int at, enum line_kind kind, const char *text)
{
	static const chtype looks[] = {
		[LINE_PLAIN] = A_NORMAL, [LINE_TITLE] = A_BOLD, [LINE_HEAD] = A_REVERSE,
		[LINE_SELECTED] = A_BOLD, [LINE_GONE] = A_DIM, [LINE_ALERT] = A_STANDOUT,
	};

	attrset((attr_t)looks[kind]);
	mvaddnstr(at, 0, text, COLS);
	for (int x = (int)strlen(text); kind == LINE_HEAD && x < COLS; x++)
		mvaddch(at, x, ' ');
	attrset(A_NORMAL);
}

void screen_show(const struct top_frame *f, enum line_kind kind, const char *word)
{
	erase();
	for (unsigned i = 0; i < f->n && i < screen_lines(); i++)
		line_show((int)i, f->line[i].kind, f->line[i].text);
	line_show(LINES - 1, kind, word);
	refresh();
}

static enum top_ask key_read(void)
{
	int key = getch();

	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].key == key)
			return keys[i].ask;
	return ASK_OTHER;
}

enum top_ask screen_ask(int timeout_ms)
{
	struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	enum top_ask ask = key_read();	/* curses may have read ahead */
	int n;

	if (ask != ASK_NOTHING)
		return ask;
	n = ppoll(&in, 1, &t, &waiting);
	if (ended_by || (n > 0 && !(in.revents & POLLIN)))
		return ASK_ENDED;
	return n ? key_read() : ASK_NOTHING;
}
