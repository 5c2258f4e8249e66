/*
 * memcached gives each item that is stored a number, which `gets` tells and `cas` wants
 * back.  Two versions draw them in another order, or more of them, so an item's number
 * is another in each: which of ours is which of theirs is learnt where a reply tells it,
 * and put into the requests that name it.
 *
 * Requests and replies are lines of words, some with data behind them; a piece may
 * hold several, or the middle of one.  Where a connection stands in them is kept by its
 * descriptor: one thread at a time has it.  The numbers are all threads'.
 */
#define CAS_FDS		4096
#define CAS_NUMBERS	65536	/* the last ones that were told */
#define CAS_DIGITS	20
#define CAS_WHOLLY	UINT64_MAX	/* the binary protocol: nothing is a line */

/* What stands where in a line: the words' places, 0: there is none. */
struct cas_form {
	char head[8];		/* the first word */
	uint8_t size;		/* how much data is behind the line */
	uint8_t number;		/* the item's number: this word, ... */
	uint8_t letter;		/* ... or one behind it that begins so */
};

static const struct cas_form cas_forms[] = {
	{ "cas", 4, 5, 0 }, { "set", 4, 0, 0 }, { "add", 4, 0, 0 }, { "replace", 4, 0, 0 },
	{ "append", 4, 0, 0 }, { "prepend", 4, 0, 0 },
	{ "ms", 2, 3, 'C' }, { "md", 0, 2, 'C' }, { "ma", 0, 2, 'C' },
	{ "VALUE", 3, 4, 0 }, { "VA", 1, 2, 'c' }, { "HD", 0, 1, 'c' }, { "EX", 0, 1, 'c' },
	{ "NS", 0, 1, 'c' }, { "NF", 0, 1, 'c' },
};
#define CAS_FORMS	(sizeof(cas_forms) / sizeof(cas_forms[0]))

/* How far one direction of a connection has come. */
struct cas_line {
	uint64_t skip;		/* data still to come */
	uint64_t size;		/* of the line's data */
	char head[8];
	uint8_t form;		/* + 1 */
	uint8_t word, at;	/* the word under way, and how much of it has come */
	uint8_t first;		/* its first byte */
	uint8_t in_number;
	uint8_t digits;
	uint64_t theirs, ours;	/* the number, so far */
};

static struct {
	uint8_t known;
	struct cas_line requests, replies;
} cas_conn[CAS_FDS];

static struct {
	uint64_t theirs, ours;
} cas_number[CAS_NUMBERS];

static inline bool cas_is(int64_t fd)
{
	return fd >= 0 && fd < CAS_FDS && cas_conn[fd].known;
}

static inline void cas_new(int64_t fd)
{
	if (fd < 0 || fd >= CAS_FDS)
		return;
	cas_conn[fd].known = 1;
	cas_conn[fd].requests = cas_conn[fd].replies = (struct cas_line){ 0 };
}

/* --- numbers ------------------------------------------------------------------------------ */

static inline void cas_note(uint64_t theirs, uint64_t ours)
{
	unsigned i = theirs % CAS_NUMBERS;

	/* Release: who reads `theirs` on both sides of `ours` has a pair. */
	__atomic_store_n(&cas_number[i].theirs, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&cas_number[i].ours, ours, __ATOMIC_RELEASE);
	__atomic_store_n(&cas_number[i].theirs, theirs, __ATOMIC_RELEASE);
}

/* One that nobody was told is no item's: 1 is the first ever drawn. */
static inline uint64_t cas_ours(uint64_t theirs)
{
	unsigned i = theirs % CAS_NUMBERS;
	uint64_t ours;

	/* Acquire: pairs with cas_note. */
	if (__atomic_load_n(&cas_number[i].theirs, __ATOMIC_ACQUIRE) != theirs)
		return 1;
	ours = __atomic_load_n(&cas_number[i].ours, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&cas_number[i].theirs, __ATOMIC_ACQUIRE) == theirs ? ours : 1;
}

/* --- lines -------------------------------------------------------------------------------- */

static inline bool cas_digit(int c)
{
	return c >= '0' && c <= '9';
}

static inline const struct cas_form *cas_form_of(const struct cas_line *l)
{
	return l->form ? &cas_forms[l->form - 1] : 0;
}

static inline void cas_form_find(struct cas_line *l)
{
	for (unsigned i = 0; i < CAS_FORMS && !l->form; i++) {
		unsigned n = 0;

		while (n < sizeof(l->head) && l->head[n] == cas_forms[i].head[n])
			n++;
		if (n == sizeof(l->head))
			l->form = (uint8_t)(i + 1);
	}
}

/* The next byte is the first of an item's number. */
static inline bool cas_begins(const struct cas_line *l)
{
	const struct cas_form *f = cas_form_of(l);

	if (!f || !f->number)
		return false;
	return f->letter ? l->word >= f->number && l->at == 1 && l->first == f->letter
			 : l->word == f->number && l->at == 0;
}

static inline void cas_number_begin(struct cas_line *l)
{
	l->in_number = 1;
	l->digits = 0;
	l->theirs = l->ours = 0;
}

static inline void cas_number_end(struct cas_line *l)
{
	l->in_number = 0;
	l->at++;
}

static inline void cas_line_end(struct cas_line *l)
{
	const struct cas_form *f = cas_form_of(l);

	*l = (struct cas_line){ .skip = f && f->size ? l->size + 2 : 0 };
}

/* One byte, of no number and no data. */
static inline void cas_take(struct cas_line *l, uint8_t c)
{
	const struct cas_form *f = cas_form_of(l);

	if (c == '\n') {
		cas_line_end(l);
		return;
	}
	if (c == ' ') {
		if (!l->word++)
			cas_form_find(l);
		l->at = 0;
		return;
	}
	if (!l->at)
		l->first = c;
	if (!l->word && l->at < sizeof(l->head))
		l->head[l->at] = (char)c;
	else if (!l->word)
		l->head[0] = 0;		/* too long for any */
	if (f && l->word == f->size && cas_digit(c) && l->size < CAS_WHOLLY / 100)
		l->size = l->size * 10 + (c - '0');
	if (l->at < UINT8_MAX)
		l->at++;
}

/* --- requests ----------------------------------------------------------------------------- */

/* Our number in theirs' place, in as many digits if it has no more. */
static inline void cas_put(struct rules_run *run, const struct cas_line *l)
{
	uint8_t digits[UINT8_MAX];
	uint64_t n = cas_ours(l->theirs);
	unsigned at = sizeof(digits), least = at - l->digits;

	while (n || at > least) {
		digits[--at] = (uint8_t)(l->digits > CAS_DIGITS ? '9' : '0' + n % 10);
		n = at > least || l->digits <= CAS_DIGITS ? n / 10 : 0;
	}
	rules_add(run, view_of(digits + at, sizeof(digits) - at));
}

/* All of it belongs to an item. */
static inline bool cas_is_data(int64_t fd, int64_t n)
{
	return cas_is(fd) && n > 0 && cas_conn[fd].requests.skip >= (uint64_t)n;
}

static inline void cas_passed(int64_t fd, int64_t n)
{
	if (cas_conn[fd].requests.skip != CAS_WHOLLY)
		cas_conn[fd].requests.skip -= (uint64_t)n;
}

/* How many bytes from i on are not of a number; what they are is kept. */
static inline size_t cas_plain(struct cas_line *l, struct view v, size_t i)
{
	size_t from = i;

	while (i < view_len(v) && !l->in_number) {
		size_t data = view_len(v) - i < l->skip ? view_len(v) - i : l->skip;

		if (l->skip != CAS_WHOLLY)
			l->skip -= data;
		i += data;
		if (i == view_len(v))
			break;
		if (cas_begins(l))
			cas_number_begin(l);
		else
			cas_take(l, (uint8_t)view_at(v, i++));
	}
	return i - from;
}

/* The digits from i on; the number may go on in the next piece. */
static inline size_t cas_digits(struct cas_line *l, struct view v, size_t i)
{
	size_t from = i;

	for (; cas_digit(view_at(v, i)) && l->digits < UINT8_MAX; i++, l->digits++)
		l->theirs = l->theirs * 10 + (uint64_t)(view_at(v, i) - '0');
	return i - from;
}

/* What a request becomes for us.  Digits that may not be all are held back. */
static inline struct view cas_request(struct rules_run *run, int64_t fd, struct view v)
{
	struct cas_line *l = &cas_conn[fd].requests;
	size_t i, n;

	if (!l->word && !l->at && !l->skip && view_at(v, 0) == 0x80)
		l->skip = cas_conn[fd].replies.skip = CAS_WHOLLY;
	i = cas_plain(l, v, 0);
	if (!l->in_number)
		return v;
	rules_build(run);
	rules_add(run, view_sub(v, 0, i));
	while (i < view_len(v)) {
		i += cas_digits(l, v, i);
		if (i == view_len(v))
			break;
		if (l->digits)
			cas_put(run, l);
		cas_number_end(l);
		n = cas_plain(l, v, i);
		rules_add(run, view_sub(v, i, n));
		i += n;
	}
	return rules_built(run);
}

/* --- replies ------------------------------------------------------------------------------ */

struct cas_walk {
	struct view theirs, ours;
	size_t i, j;
	bool notes;
};

static inline bool cas_at_end(const struct cas_walk *w)
{
	return w->i >= view_len(w->theirs) || w->j >= view_len(w->ours);
}

static inline bool cas_data(struct cas_line *l, struct cas_walk *w)
{
	while (l->skip && !cas_at_end(w)) {
		if (view_at(w->theirs, w->i++) != view_at(w->ours, w->j++))
			return false;
		if (l->skip != CAS_WHOLLY)
			l->skip--;
	}
	return true;
}

static inline void cas_numbers(struct cas_line *l, struct cas_walk *w)
{
	for (; cas_digit(view_at(w->theirs, w->i)); w->i++)
		l->theirs = l->theirs * 10 + (uint64_t)(view_at(w->theirs, w->i) - '0');
	for (; cas_digit(view_at(w->ours, w->j)); w->j++)
		l->ours = l->ours * 10 + (uint64_t)(view_at(w->ours, w->j) - '0');
	if (cas_at_end(w))
		return;
	if (w->notes)
		cas_note(l->theirs, l->ours);
	cas_number_end(l);
}

/* As far as both go; false: they differ. */
static inline bool cas_compare(struct cas_line *l, struct cas_walk *w)
{
	for (;;) {
		if (!cas_data(l, w))
			return false;
		if (l->in_number)
			cas_numbers(l, w);
		if (cas_at_end(w))
			return true;
		if (cas_begins(l)) {
			cas_number_begin(l);
			continue;
		}
		if (view_at(w->theirs, w->i) != view_at(w->ours, w->j++))
			return false;
		cas_take(l, (uint8_t)view_at(w->theirs, w->i++));
	}
}

/*
 * Our reply beside what the leader has sent of its own: the same but for the numbers.
 * How much of ours that is, or -1; `notes`: it is served, so what it tells is kept.
 */
static inline int64_t cas_reply(int64_t fd, struct view theirs, int64_t sent, struct view ours,
				bool notes)
{
	struct cas_line l = cas_conn[fd].replies;
	struct cas_walk w = { view_sub(theirs, 0, sent > 0 ? (size_t)sent : 0), ours, 0, 0, notes };

	if (sent <= 0)
		return sent;
	if (view_len(w.theirs) != (size_t)sent || !cas_compare(&l, &w) || w.i != (size_t)sent)
		return -1;
	if ((size_t)sent == view_len(theirs) && w.j != view_len(ours))
		return -1;
	if (notes)
		cas_conn[fd].replies = l;
	return (int64_t)w.j;
}
