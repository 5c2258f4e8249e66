"""What mve takes while it does nothing: footprint.py memory|quiet

The bench measures it (perf/parts); here its targets must be met.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["ROOT"], "perf"))

from parts import memory, processes, quiet, ways  # noqa

PARTS = {"memory": memory, "quiet": quiet}


def main():
    name = sys.argv[1]
    part = PARTS[name]
    scratch = tempfile.mkdtemp(dir=".")
    processes.prepare()
    try:
        held = ways.Ways(os.path.dirname(os.environ["MVE"]), os.path.abspath(scratch))
        result = part.measure(held, argparse.Namespace(quick=False), lambda text: None)
    finally:
        processes.stop_all()
        shutil.rmtree(scratch, ignore_errors=True)
    missed = [row for row in part.targets(result) if row[2] != "met"]
    if missed:
        print(*part.show(result, None), sep="\n")
        sys.exit(f"{name}: {'; '.join(' '.join(row) for row in missed)}")
    print(f"footprint_{name}: ok")


main()
