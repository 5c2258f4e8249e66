"""turns.py VERSION...: what status.json says of a session with --one-at-a-time that has ended: its
follower lived to the end, no difference was tried again, and in these versions, 0 the leader and 1
the follower, no thread waited for the baton in vain."""
import json
import sys

with open("status.json", encoding="utf-8") as f:
    versions = json.load(f)["versions"]
leader, follower = versions
assert not follower["rewind"]["races"], follower["rewind"]
assert follower["verdicts"] == leader["verdicts"], follower["verdicts"]
for version in (versions[int(n)] for n in sys.argv[1:]):
    baton = [w for w in version["waits"] if w["kind"] == "baton"]
    assert baton and not any(w["met"] for w in baton), baton
