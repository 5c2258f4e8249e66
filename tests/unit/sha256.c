/* SHA-256 by its published examples (FIPS 180-2, appendix B), and across its blocks' ends. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/outside/bytes/sha256.h"

static void is(const void *bytes, size_t len, const char *want)
{
	char text[SHA256_TEXT];
	struct sha256 s;

	for (size_t part = 1; part < 200; part += 61) {
		sha256_begin(&s);
		for (size_t at = 0; at < len; at += part)
			sha256_add(&s, (const char *)bytes + at, part < len - at ? part : len - at);
		sha256_end(&s, text);
		cr_assert(!strcmp(text, want), "%s", text);
	}
}

Test(sha256, examples)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static char many[1000000];

	memset(many, 'a', sizeof(many));
	is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	is(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	is(many, sizeof(many), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
