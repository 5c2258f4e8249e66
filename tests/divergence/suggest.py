"""The rule that a report suggests is taken, added to those before, and the same
versions run again: until nothing is found to differ any more.

suggest.py, in an empty folder; environment as tests/run sets it.
"""
import json
import os
import shutil
import subprocess

MVE, ROOT, TESTS = os.environ["MVE"], os.environ["ROOT"], os.environ["TESTS"]
NAME = os.environ["MVE_SESSION"]
RULEC = os.path.join(os.path.dirname(MVE), "rulec")
DIFFER = TESTS + "/differ"
ROUNDS = "12"

# How often a fault is met: a rule is for what was seen, and is seen as often.
FAULTS = {"byte": 1, "vector": 1, "length": 1, "short": 1, "fd": 3, "file": 1, "missing": 3,
          "extra": 3, "order": 6}


def run(fault, rules):
    """The verdict, and the report if there was one."""
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)
    more = ["--rules", rules] if rules else []
    done = subprocess.run([MVE, "run", "-n", NAME, "-f", f"{DIFFER} {fault} {ROUNDS}", *more, "--",
                           DIFFER, "none", ROUNDS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "differ: ok\n", done
    if f"mve: {NAME}/f1: " not in done.stderr:
        return None
    report = subprocess.run([MVE, "report", NAME, "--json"], capture_output=True, text=True,
                            check=True)
    return json.loads(report.stdout)


def place(report):
    """What was met where: the same again means that the rule did not help."""
    return report["window"][-1]["seq"], report["follower"]["call"]


def mend(fault, most):
    rules, last, texts = None, None, []
    for n in range(most + 1):
        report = run(fault, rules)
        if not report:
            assert n, f"{fault}: nothing differs"
            return n, texts
        assert place(report) != last, (fault, texts, report)
        last = place(report)
        text = report["suggested_rule"]
        assert text and not report["suggested_why"], (fault, report)
        texts.append(text)
        rules = f"{fault}.rules"
        with open(rules, "w") as f:
            f.write("".join(texts))
        # Without a warning: the new one does not contradict those before.
        subprocess.run([RULEC, "-W", "check", rules], check=True)
    raise SystemExit(f"{fault}: differs after {most} rules: {texts} {report}")


def check_none():
    """Where no rule can help, the report says why."""
    for fault, why in (("abort", "the follower is about to abort"),
                       ("crash", "rules are about divergences")):
        report = run(fault, None)
        assert report["suggested_rule"] is None, report
        assert report["suggested_why"] == why, report


# A file of rules, and what the report says of them: how near, why, wanted and had.
NEAREST = [
    ('rule near write(_, "$11\\r\\nvalue No. 5…", _) => write(_, _, _)\n', "nearest",
     "buf of write, call 1 on its left, is another",
     '"$11\\r\\nvalue No. 5…"', '"$11\\r\\nvalue no. 5\\r\\n"'),
    ('rule num write(99, _, _) => write(_, _, _)\n', "nearest",
     "fd of write, call 1 on its left, is another", "99", "4"),
    ('rule guarded write(_, s, n)\n\t{ view_len($(s)) == 3 }\n\t=> write(_, _, _)\n', "nearest",
     "the guard of call 1 on its left says no", "write(_, s, n)",
     'write, buf "$11\\r\\nvalue no. 5\\r\\n"'),
    ('rule second write(_, "$11\\r\\nvalue no. 5\\r\\n", _), getpid() => write(_, _, _), getpid()\n',
     "nearest", "call 2 on its left is another", "getpid()",
     'writev, iov "said: value no. 5\\n"'),
    ('rule right write(_, "$11\\r\\nvalue no. 5\\r\\n", _) => write(_, "else…", _)\n', "nearest",
     "buf of write, call 1 on its right, is another", '"else…"', '"$11\\r\\nvalue nO. 5\\r\\n"'),
    ('rule other write(_, "$11\\r\\nvalue no. 5\\r\\n", _) => getppid()\n', "nearest",
     "call 1 on its right is another", "getppid()", 'write, buf "$11\\r\\nvalue nO. 5\\r\\n"'),
    ('rule made write(fd, s, n) { $(s) == "$11\\r\\nvalue no. 5\\r\\n" }\n'
     '\t=> write(fd, s, n) -> { $(s) = "$$11\\r\\nvalue nO. 6\\r\\n"; }\n', "followed",
     "it was followed: buf of write is not what it makes of it",
     '"$11\\r\\nvalue nO. 6\\r\\n"', '"$11\\r\\nvalue nO. 5\\r\\n"'),
    ('rule foreign nothing => write(d, "more…", _) { $(d) == 4 }\n', "nearest",
     "fd of write is none that a rule opened", None, "4"),
]


def check_nearest():
    for text, how, why, wanted, had in NEAREST:
        with open("near.rules", "w") as f:
            f.write(text)
        report = run("extra" if "foreign" in text else "byte", "near.rules")
        rule = report["rule"]
        assert rule and (rule["how"], rule["why"]) == (how, why), rule
        assert (rule["wanted"], rule["had"]) == (wanted, had), rule
        assert rule["name"] == text.split()[1], rule
        assert rule["line"] == (2 if "guarded" in text else 1), rule
        shown = subprocess.run([MVE, "report", NAME], capture_output=True, text=True, check=True)
        assert not wanted or f"  wanted  {wanted}" in shown.stdout, shown.stdout
        # What a rule has made of it is that rule's to mend.
        assert (report["suggested_rule"] is None) == (how == "followed"), report


os.environ.setdefault("XDG_CACHE_HOME", os.getcwd())
for fault, most in FAULTS.items():
    n, _ = mend(fault, most)
    print(f"{fault}: gone with {n} rules")
check_none()
check_nearest()
