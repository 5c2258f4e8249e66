/*
 * C++: what libstdc++ writes of containers beside what it is given: neighbours in lists, the way up
 * to the root in trees, the text of strings.  Each round changes them at random under a checkpoint,
 * and goes back.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>
#include <mve/checkpoint.h>

#define ROUNDS	2000
#define KEYS	400

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: round %d: %s: %s\n", __LINE__, round_number, #cond, \
		       mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

static int round_number;
static std::list<int> ring, other;
static std::map<int, std::string> tree;
static std::multiset<int> numbers;
static std::vector<std::string> texts(40);
static std::vector<std::wstring> wide(10);

static int pick(int most)
{
	static unsigned long now = 1;

	now = now * 6364136223846793005ul + 1442695040888963407ul;
	return (int)((now >> 33) % (unsigned)most);
}

static void change_lists()
{
	auto at = ring.begin();

	for (int n = pick((int)ring.size() + 1); n > 0; n--)
		++at;
	switch (pick(9)) {
	case 0: ring.push_back(pick(KEYS)); break;
	case 1: ring.push_front(pick(KEYS)); break;
	case 2: ring.insert(at, pick(KEYS)); break;
	case 3: if (at != ring.end()) ring.erase(at); break;
	case 4: ring.reverse(); break;
	case 5: ring.sort(); break;
	case 6: other.splice(other.begin(), ring, at, ring.end()); break;
	case 7: ring.splice(at, other); break;
	case 8: ring.swap(other); break;
	}
}

static void change_trees()
{
	if (pick(2))
		tree[pick(KEYS)] = std::string((size_t)pick(60), 't');
	else
		tree.erase(pick(KEYS));
	if (pick(2))
		numbers.insert(pick(KEYS));
	else
		numbers.erase(pick(KEYS));
}

static void change_text(std::string &text)
{
	size_t at = (size_t)pick((int)text.size() + 1);

	switch (pick(11)) {
	case 0: text += "more of it"; break;
	case 1: text.push_back((char)('a' + pick(26))); break;
	case 2: text.insert(at, "between"); break;
	case 3: text.erase(at, (size_t)pick(20)); break;
	case 4: text.replace(at, (size_t)pick(9), "other"); break;
	case 5: text.assign((size_t)pick(70), 'x'); break;
	case 6: text.resize((size_t)pick(200), 'r'); break;
	case 7: text.append((size_t)pick(30), '-'); break;
	case 8: text = texts[(size_t)pick(40)]; break;
	case 9: text.swap(texts[(size_t)pick(40)]); break;
	case 10: text.reserve((size_t)pick(500)); break;
	}
}

static void change()
{
	change_lists();
	change_trees();
	change_text(texts[(size_t)pick(40)]);
	wide[(size_t)pick(10)] += L"wide";
	if (pick(50) == 0)
		wide[(size_t)pick(10)].clear();
}

/* All that can be seen of them, also backwards, by key, and to the end of each text. */
static void show(std::string &to, const std::list<int> &of)
{
	size_t most = of.size() + 1;

	for (auto at = of.begin(); at != of.end() && most-- > 0; ++at)
		to += std::to_string(*at) + ',';
	most = of.size() + 1;
	for (auto at = of.rbegin(); at != of.rend() && most-- > 0; ++at)
		to += std::to_string(*at) + ';';
	to += '\n';
}

static std::string shown()
{
	std::string to;

	show(to, ring);
	show(to, other);
	for (int key = 0; key < KEYS; key++) {
		auto at = tree.find(key);
		to += at == tree.end() ? "-" : at->second;
		to += std::to_string(numbers.count(key));
	}
	int last = -1, most = KEYS;
	for (auto at = tree.begin(); at != tree.end() && most-- > 0; ++at) {
		to += at->first > last ? '<' : '>';
		last = at->first;
	}
	to += '\n';
	for (const auto &text : texts)
		to += text + (strlen(text.c_str()) == text.size() ? "." : "!") + '\n';
	for (const auto &text : wide)
		for (size_t n = 0; n <= text.size(); n++)
			to += (char)text.c_str()[n];
	return to;
}

int main()
{
	static std::string before, after;

	for (int n = 0; n < 300; n++)
		change();
	for (round_number = 0; round_number < ROUNDS; round_number++) {
		before = shown();
		switch (mve_checkpoint_open()) {
		case 0:
			for (int n = 0; n < 5; n++)
				change();
			mve_checkpoint_restore();
			CHECK(!"not restored");
			break;
		case 1:
			break;
		default:
			CHECK(!"not opened");
		}
		after = shown();
		CHECK(before == after);
		change();
	}
	puts("containers: ok");
	return 0;
}
