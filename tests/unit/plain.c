/*
 * What programs have written is shown, and no terminal obeys it (plain.c).
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/print/plain.h"

static const char *shown(const char *text)
{
	static char to[256];

	plain_text(text, strlen(text), false, to, sizeof(to));
	return to;
}

Test(plain, shows)
{
	cr_expect_str_eq(shown("redis-server --port 7777"), "redis-server --port 7777");
	cr_expect_str_eq(shown("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
			 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	cr_expect_str_eq(shown("\x1b[31m\x07\x7f\n\t"), "\\x1b[31m\\x07\\x7f\\x0a\\x09");
	cr_expect_str_eq(shown("\x9b" "31m"), "\\x9b31m");
	cr_expect_str_eq(shown("\xc2\x9b" "31m"), "\\xc2\\x9b31m");
	cr_expect_str_eq(shown("a\xe2\x80\xae" "b"), "a\\xe2\\x80\\xaeb");
	cr_expect_str_eq(shown("\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82"),
			 "\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xe2\\x82");
}

Test(plain, ends)
{
	char to[8];

	cr_expect_eq(plain_text("\n\n\n", 3, true, to, sizeof(to)), 3);
	cr_expect_eq(plain_text("\x1b\x1b\x1b", 3, false, to, sizeof(to)), 4);
	cr_expect_str_eq(to, "\\x1b");
	cr_expect_eq(plain_text("", 0, false, to, 1), 0);
}

/* Whatever it is given, it writes nothing that is obeyed, and the same again for that. */
Test(plain, any)
{
	char text[64], once[300], twice[300];

	srandom(7);
	for (int round = 0; round < 100000; round++) {
		size_t len = (size_t)random() % sizeof(text), n;

		for (size_t i = 0; i < len; i++)
			text[i] = (char)(random() % 3 ? random() : "\xc2\x9b\x1b\xe2\x80\xae"[random() % 6]);
		n = plain_text(text, len, false, once, sizeof(once));
		cr_assert_eq(strlen(once), n);
		for (size_t i = 0; i < n; i++)
			cr_assert((unsigned char)once[i] >= ' ' && once[i] != 0x7f &&
				  (i + 1 == n || memcmp(once + i, "\xc2\x9b", 2)));
		plain_text(once, n, false, twice, sizeof(twice));
		cr_assert_str_eq(once, twice);
	}
}

Test(plain, json)
{
	json_t *j = json_loads("{\"a\\u001b\": [\"x\\u0007\", {\"b\": \"\\u009b\\n\"}], \"n\": 7}", 0,
			       NULL);
	char *text = json_dumps(plain_json(j, false), JSON_COMPACT | JSON_SORT_KEYS);

	cr_expect_str_eq(text, "{\"a\\\\x1b\":[\"x\\\\x07\",{\"b\":\"\\\\xc2\\\\x9b\\\\x0a\"}],\"n\":7}");
	free(text);
	json_decref(j);
}
