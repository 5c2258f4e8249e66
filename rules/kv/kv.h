/*
 * What the rules of the key-value server know of its requests: a line of words,
 * "CMD[-TYPE] key [value]".
 */
static inline bool parse(struct view line, struct view *cmd, struct view *typ, struct view *key,
	struct view *val)
{
	*typ = view_cut(&line, ' ');
	*cmd = view_cut(typ, '-');
	*key = view_cut(&line, ' ');
	*val = line;
	return view_len(*cmd) > 0;
}
