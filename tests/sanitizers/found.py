"""found.py REPORT KIND FUNCTION REQUEST: is the report a finding of this kind in this
function, with the bytes of the file REQUEST as its connection's last?  Prints its
summary and the file that has its request."""
import json
import sys


def main():
    with open(sys.argv[1]) as file:
        report = json.load(file)
    with open(sys.argv[4], "rb") as file:
        sent = file.read()
    finding = report["finding"]
    if report["verdict"] != "found" or finding["tool"] != "AddressSanitizer":
        return f"{report['verdict']}: {report['summary']}"
    if finding["kind"] != sys.argv[2] or finding["function"] != sys.argv[3]:
        return f"{finding['kind']} in {finding['function']}"
    if finding["request"] is None:
        return "no request"
    with open(finding["request"]["file"], "rb") as file:
        kept = file.read()
    if not finding["request"]["whole"] or not kept or not sent.endswith(kept) and kept != sent:
        return f"the request kept is {kept[-200:]!r} of {len(kept)} bytes"
    if len(kept) != finding["request"]["bytes"] or not finding["request"]["text"]:
        return "the request's fields"
    print(report["summary"])
    print(finding["request"]["file"])
    return None


sys.exit(main())
