/*
 * C++: what libstdc++ keeps, and what it writes of the program's objects, goes back as the
 * program's memory does, also where a checkpoint is restored in the middle of an exception.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include <mve/checkpoint.h>

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

struct value {
	virtual ~value() = default;
	virtual std::string show() const = 0;
};

struct number : value {
	int n = 0;
	std::string show() const override { return std::to_string(n); }
};

struct words : value {
	std::vector<std::string> all;
	std::string show() const override
	{
		std::ostringstream text;

		for (const auto &word : all)
			text << word << ' ';
		return text.str();
	}
};

static std::map<std::string, std::shared_ptr<value>> values;
static std::string text;
static std::list<std::string> names;

/* What it is given may be anywhere. */
static __attribute__((noinline)) void append(std::string &to, const char *more)
{
	to += more;
}

static void change()
{
	auto w = std::make_shared<words>();

	for (int n = 0; n < 100; n++)
		w->all.push_back("a word that is not short, " + std::to_string(n));
	CHECK(w->show().size() > 2000);
	values["words"] = w;
	values["number"] = w;
	values.erase("other");
	for (int n = 0; n < 20; n++) {
		append(text, "and more, ");
		names.push_front(std::to_string(n));
	}
	names.reverse();
	text.insert(0, "before all ");
}

/* It is left as it unwinds. */
struct leaves {
	~leaves()
	{
		CHECK(std::uncaught_exceptions() == 1);
		change();
		mve_checkpoint_restore();
	}
};

static void unwinds()
{
	leaves it;

	throw std::runtime_error("on its way");
}

static void catches()
{
	try {
		change();
		throw std::runtime_error("caught");
	} catch (const std::exception &e) {
		CHECK(e.what() == std::string("caught"));
		mve_checkpoint_restore();
	}
}

static void only_changes()
{
	change();
	mve_checkpoint_restore();
}

static __attribute__((noinline)) void taken_back(void (*function)())
{
	int got = mve_checkpoint_open();

	CHECK(got >= 0);
	if (got == 1)
		return;
	try {
		function();
	} catch (...) {
		CHECK(!"it was thrown here");
	}
	CHECK(!"it did not go back");
}

static void as_it_was()
{
	bool caught = false;

	CHECK(std::uncaught_exceptions() == 0 && !std::current_exception());
	CHECK(values.size() == 2 && values["number"]->show() == "7");
	CHECK(values["other"]->show() == "one ");
	CHECK(text == "a text" && names.size() == 1 && names.front() == "a name");
	try {
		(void)values.at("words");
	} catch (const std::out_of_range &) {
		caught = true;
	}
	CHECK(caught);
}

int main()
{
	auto n = std::make_shared<number>();
	auto w = std::make_shared<words>();

	n->n = 7;
	w->all = { "one" };
	values = { { "number", n }, { "other", w } };
	text = "a text";
	names = { "a name" };
	for (int round = 0; round < 300; round++)
		for (auto function : { only_changes, unwinds, catches }) {
			taken_back(function);
			as_it_was();
		}
	puts("objects: ok");
}
