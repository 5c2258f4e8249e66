"""pass.py: the pass on small IR: which stores are left out, and why.

Each case is a function's body and what is counted of it; what is not named is 0. The pass itself
ends the compiler where it has made broken IR.
"""
import os
import shutil
import subprocess
import sys

PLUGIN = os.path.join(os.environ["ROOT"], "build/checkpoint/mve-checkpoint.so")
DECLARED = """
target triple = "x86_64-pc-linux-gnu"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare void @other(ptr)
declare void @llvm.lifetime.start.p0(i64, ptr)
declare ptr @malloc(i64)
declare i64 @strlen(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

LOOP = """entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %p, i64 %i
  store i32 0, ptr %at
  CALL
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
"""

# The value of the last turn is stored to behind the loop, which is there twice.
LAST = """entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %r, %loop ]
  %r = load ptr, ptr %q
  store i32 7, ptr %r
  %more = icmp ne ptr %r, null
  br i1 %more, label %loop, label %end
end:
  store i64 1, ptr %r
  %far = getelementptr i8, ptr %r, i64 24
  store i64 2, ptr %far
  ret void
"""

CASES = {
    "one": ("store i64 %n, ptr %p\n ret void", "stores=1 checks=1 gates=1"),
    "own frame": ("%a = alloca i64\n store i64 %n, ptr %a\n call void @other(ptr %a)\n ret void",
                  "stores=1 stack=1"),
    "the same again": ("store i64 %n, ptr %p\n store i32 1, ptr %p\n ret void",
                       "stores=2 dominated=1 checks=1 gates=1"),
    "again behind a call": ("store i64 %n, ptr %p\n call void @other(ptr %p)\n"
                            " store i64 1, ptr %p\n ret void", "stores=2 checks=2 gates=2"),
    "again behind strlen": ("store i64 %n, ptr %p\n %l = call i64 @strlen(ptr %p)\n"
                            " store i64 1, ptr %p\n ret void",
                            "stores=2 dominated=1 checks=1 gates=1"),
    "again behind an atomic": ("store i64 %n, ptr %p\n"
                               " %a = atomicrmw add ptr %s, i64 1 seq_cst\n"
                               " store i64 1, ptr %p\n ret void", "stores=3 checks=3 gates=2"),
    "again behind what is to be zero": (
        "call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 4000, i1 0)\n store i64 1, ptr %p\n"
        " ret void", "stores=2 checks=2 gates=1"),
    "again behind what is to be ones": (
        "call void @llvm.memset.p0.i64(ptr %p, i8 1, i64 4000, i1 0)\n store i64 1, ptr %p\n"
        " ret void", "stores=2 dominated=1 checks=1 gates=1"),
    "a zero behind zeros": (
        "call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 0)\n"
        " %e = getelementptr i8, ptr %p, i64 %n\n store i8 0, ptr %e\n ret void",
        "stores=2 checks=2 gates=1 editions=1"),
    "neighbours": ("store i64 %n, ptr %p\n %b = getelementptr i8, ptr %p, i64 40\n"
                   " store i64 %n, ptr %b\n ret void", "stores=2 joined=1 checks=1 gates=1"),
    "too far": ("store i64 %n, ptr %p\n %b = getelementptr i8, ptr %p, i64 4000\n"
                " store i64 %n, ptr %b\n ret void", "stores=2 checks=2 gates=1"),
    "just allocated": ("%a = call ptr @malloc(i64 %n)\n store i64 1, ptr %a\n ret void",
                       "stores=1 checks=1 gates=1"),
    "and given away": ("%a = call ptr @malloc(i64 %n)\n call void @other(ptr %a)\n"
                        " store i64 1, ptr %a\n ret void", "stores=1 checks=1 gates=1"),
    "one way only": ("%c = icmp eq i64 %n, 0\n br i1 %c, label %a, label %b\na:\n"
                     " store i64 1, ptr %p\n br label %b\nb:\n store i64 2, ptr %p\n ret void",
                     "stores=2 checks=2 gates=2 editions=1"),
    "known on": ("store i64 %n, ptr %p\n %c = icmp eq i64 %n, 0\n"
                 " br i1 %c, label %a, label %b\na:\n store i64 1, ptr %s\n ret void\n"
                 "b:\n call void @other(ptr %p)\n store i64 2, ptr %s\n ret void",
                 "stores=3 checks=3 gates=2 editions=1"),
    "a range": (LOOP.replace("CALL", "") + "ret void", "stores=1 loop=1 checks=1 gates=1"),
    "a loop that calls": (LOOP.replace("CALL", "call void @other(ptr %p)") + "ret void",
                          "stores=1 checks=1 gates=1"),
    "two editions": (LAST, "stores=3 joined=1 checks=2 gates=1 editions=2"),
    "a block's address": (LAST.replace("store i32 7, ptr %r", "store i32 7, ptr %r\n  br label %mid\n"
                                       "mid:").replace("[ %r, %loop ]", "[ %r, %mid ]")
                          .replace("entry:", "entry:\n  store ptr blockaddress(@f, %mid), ptr %s"),
                          "stores=4 joined=1 checks=3 gates=3"),
    "by assembly, in memory": ("call void asm sideeffect \"incq $0\", \"=*m\"(ptr elementtype(i64) %p)"
                               "\n ret void", "stores=1 checks=1 gates=1"),
    "by a register": ("store i64 %n, ptr %p\n"
                      " call void asm sideeffect \"incq ($0)\", \"r,~{memory}\"(ptr %s)\n ret void",
                      "stores=1 checks=1 gates=1 unseen=1"),
    "by libc": ("%r = call ptr @memcpy(ptr %p, ptr %s, i64 %n)\n ret void",
                "stores=1 checks=1 gates=1"),
    "a string's end": ("%e = getelementptr i8, ptr %p, i64 %n\n store i8 0, ptr %e\n"
                       " call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %s, i64 %n, i1 0)\n ret void",
                       "stores=2 joined=1 checks=1 gates=1"),
    "and behind it": ("call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %s, i64 %n, i1 0)\n"
                      " %e = getelementptr i8, ptr %p, i64 %n\n store i8 0, ptr %e\n ret void",
                      "stores=2 joined=1 checks=1 gates=1"),
    "large arrays": ("%a = alloca [8192 x i8]\n%b = alloca [8192 x i8]\n"
                     " call void @llvm.lifetime.start.p0(i64 8192, ptr %a)\n"
                     " call void @llvm.lifetime.start.p0(i64 8192, ptr %b)\n"
                     " call void @other(ptr %a)\n call void @other(ptr %b)\n"
                     " store i64 %n, ptr %p\n ret void", "stores=1 checks=1 gates=1 frames=2"),
}


# Of a program, where a function may have two bodies: how many entries there are.
PIE = '!llvm.module.flags = !{!0, !1}\n!0 = !{i32 8, !"PIC Level", i32 2}\n' \
      '!1 = !{i32 7, !"PIE Level", i32 2}\n'
KEEPS = "store i64 %n, ptr %p\n ret void\n}\n"
ENTRIES = {
    "two bodies": ("define void @f(ptr %p, i64 %n) {\n" + KEEPS, "1"),
    "which nobody else calls": ("define internal void @g(ptr %p, i64 %n) {\n" + KEEPS +
                                "define void @f(ptr %p, i64 %n) {\n"
                                " call void @g(ptr %p, i64 %n)\n ret void\n}\n", "1"),
    "arguments on the stack": ("define void @f(ptr %p, i64 %n, i64 %a, i64 %b, i64 %c, i64 %d,"
                               " i64 %e) {\n" + KEEPS, ""),
    "by value": ("define void @f(ptr %p, i64 %n, ptr byval(i64) %a) {\n" + KEEPS, ""),
    "as many as there are": ("define void @f(ptr %p, i64 %n, ...) {\n" + KEEPS, ""),
    "another may take its place": ("define weak void @f(ptr %p, i64 %n) {\n" + KEEPS, ""),
    "a label": ("define void @f(ptr %p, i64 %n) {\n call void asm sideeffect \"here:\", \"\"()\n" +
                KEEPS, ""),
}


def counted(body, flags):
    text = f"{DECLARED}\ndefine void @f(ptr %p, ptr %s, i64 %n) {{\n{body}\n}}\n"
    return made(text, flags)


def made(text, flags):
    env = dict(os.environ, MVE_CHECKPOINT_FLAGS="count=-" + flags)
    done = subprocess.run(["opt-19", "-load-pass-plugin", PLUGIN, "-passes=mve-checkpoint",
                           "-disable-output"], input=text, env=env, text=True,
                          capture_output=True, check=False, timeout=60)
    if done.returncode:
        return done.stderr
    words = dict(w.split("=", 1) for w in done.stderr.split())
    return " ".join(f"{k}={v}" for k, v in words.items()
                    if k not in ("file", "unknown") and v != "0")


def main():
    if not os.path.exists(PLUGIN) or not shutil.which("opt-19"):
        print("no plugin, or no opt-19")
        sys.exit(77)
    wrong = 0
    for name, (body, expected) in CASES.items():
        got = counted(body, "")
        if got != expected:
            print(f"{name}: {got}, expected {expected}")
            wrong += 1
    without = ",no-stack,no-frames,no-dominated,no-joined,no-loops,no-zeros,no-editions"
    for name, (body, expected) in CASES.items():
        got = [word for word in counted(body, without).split() if "unseen" not in word]
        stores = expected.split()[0].split("=")[1]
        if got != [f"stores={stores}", f"checks={stores}", f"gates={stores}"]:
            print(f"{name}, without analyses: {' '.join(got)}")
            wrong += 1
    for name, (text, expected) in ENTRIES.items():
        got = dict(w.split("=") for w in made(DECLARED + text + PIE, "").split() if "=" in w)
        if got.get("entries", "") != expected:
            print(f"{name}: {got}, expected entries={expected}")
            wrong += 1
    if wrong:
        sys.exit(1)
    print("pass: ok")


main()
