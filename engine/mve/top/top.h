/*
 * What the files of mve top share: top.c (options, asking, keys), top_frame.c
 * (what the screen says, as lines of text) and top_screen.c (the terminal).
 */
#ifndef MVE_TOP_H
#define MVE_TOP_H

#include <jansson.h>
#include <stdbool.h>

#define FRAME_LINES	100
#define FRAME_COLUMNS	160

enum line_kind { LINE_PLAIN, LINE_TITLE, LINE_HEAD, LINE_SELECTED, LINE_GONE, LINE_ALERT };

struct top_line {
	enum line_kind kind;
	char text[FRAME_COLUMNS + 1];
};

struct top_frame {
	unsigned n;
	struct top_line line[FRAME_LINES];
};

/* Two answers of the monitor, and the time between them. */
struct top_sample {
	json_t *before, *now;	/* before: NULL at first */
	double seconds;
};

/*
 * Says what the sample tells in at most `lines` lines; `selected` is a version's
 * name, or "".
 */
void frame_make(struct top_frame *f, const struct top_sample *s, const char *selected,
		unsigned lines);

/* Whether a version follows, and can be dropped or promoted. */
bool top_follows(const json_t *version);

/* What a key asks for. */
enum top_ask {
	ASK_NOTHING, ASK_QUIT, ASK_PAUSE, ASK_NEXT, ASK_LAST, ASK_DROP, ASK_PROMOTE, ASK_YES,
	ASK_OTHER, ASK_SIZE, ASK_ENDED,
};

/* Takes the terminal; false after a message. */
bool screen_open(void);
/* Gives it back as it was; a signal that ended us does so now. */
void screen_close(void);
/* Lines that a frame may have. */
unsigned screen_lines(void);
/* Shows a frame and, in the last line, a word. */
void screen_show(const struct top_frame *f, enum line_kind kind, const char *word);
/* What a key asks; ASK_NOTHING when the time is over, ASK_ENDED on a signal or hang-up. */
enum top_ask screen_ask(int timeout_ms);

#endif
