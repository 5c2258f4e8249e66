"""find.py SEED: many.rules, many.t; prints how many sequences many.t has.

Random rules that begin alike, and which of them a sequence of calls meets by the
meaning of the language: the longest left side, among equals the earlier rule.
"""
import random
import re
import sys

RULES, TESTS = 150, 150
TEXTS = ["", "a", "ab", "abc", "b", "ba", "key ", "key 1", "key 12", "key 2", "\\xff\\x01", "?"]
FDS = [-1, 1, 2, 3, 4]
r = random.Random(int(sys.argv[1]))


def content():
    """A pattern as written, and the regular expression that it is."""
    text = r.choice(TEXTS)
    plain = re.escape(text.encode().decode("unicode_escape"))
    kind = r.randrange(7)
    if kind == 0:
        return f'"{text}"', plain + "$"
    if kind in (1, 2):
        return f'"{text}…"', plain
    if kind == 3 and text.isalnum():
        return f"~ /^{text}[0-9a]*b/", plain + "[0-9a]*b"
    if kind == 4 and text.isalnum():
        return f"~ /^{text}?(?:b|k)/", f"{text[:-1]}(?:{text[-1]})?(?:b|k)"
    if kind == 5 and text.isalnum():
        other = r.choice(TEXTS[1:5])
        return f'~ "{text}…" | /b{other}/', f"(?:{text}|.*b{other})"
    return "s", ""


def number(values):
    return str(r.choice(values)) if r.random() < .6 else "_"


class Rule:
    def __init__(self, i):
        self.fd, self.n = number(FDS), number([1, 2, 3])
        self.content, self.regex = content()
        self.dup = number(FDS) if r.random() < .3 else None
        self.own = r.choice(["_", "_", "7", "8"])
        self.least = r.choice([1, 2, 4]) if self.content == "s" else None
        guard = "{ 1 }" if self.least is None else f"{{ view_len($(s)) >= {self.least} }}"
        left = f"write({self.fd}, {self.content}, {self.n}) {guard}"
        if self.dup is not None:
            left += f", dup({self.dup})"
        self.text = f"rule r{i} {left} => write(_, _, {self.own})\n"

    def holds(self, fd, text, n, dup, own):
        if self.least is not None and len(text) < self.least:
            return False
        return (self.fd in ("_", str(fd)) and self.n in ("_", str(n)) and
                re.match(self.regex, text, re.S) is not None and
                self.own in ("_", str(own)) and
                (self.dup is None or (dup is not None and self.dup in ("_", str(dup)))))


def sequence():
    text = "".join(r.choice(TEXTS) for _ in range(r.randrange(3)))
    real = text.encode().decode("unicode_escape")
    fd, n = r.choice(FDS + [9]), r.choice([1, 2, 3, 4])
    dup = r.choice(FDS) if r.random() < .5 else None
    return text, real, fd, n, dup, r.choice([7, 8, 9])


rules = [Rule(i) for i in range(RULES)]
with open("many.rules", "w") as f:
    f.write("".join(rule.text for rule in rules))
taken = set()
with open("many.t", "w") as f:
    for i in range(TESTS):
        text, real, fd, n, dup, own = sequence()
        held = [k for k, rule in enumerate(rules) if rule.holds(fd, real, n, dup, own)]
        best = next((k for k in held if rules[k].dup is not None), held[0] if held else None)
        events = f'write({fd}, "{text}", {n}) = 1' + (f", dup({dup}) = 5" if dup is not None else "")
        taken.add(best)
        f.write(f't{i}: {events} ; {"diverge" if best is None else "ok"} ; '
                f'write(99, "other", {own}){"" if best is None else f" = 1 [match r{best}]"}')
        if best is not None and dup is not None and rules[best].dup is None:
            f.write(f", dup({dup})")
        f.write("\n")
if len(taken) < 12:
    raise SystemExit(f"only {len(taken)} different rules are taken")
print(TESTS)
