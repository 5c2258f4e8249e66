# mve replay --gdb: commands for gdb, with which a replay is gone through.  mve hands this text to
# gdb, and in MVE_REPLAY, as JSON, what is replayed: mve's own path, the recording's folder, the
# options, the command ([]: the recorded one) and the place where it is to stand first.
#
# The replay is a session of its own (mve replay --until), in whose process the debugger is.  It
# goes forwards by `mve go`, while the process runs; and backwards by beginning anew: what was
# recorded happens again, event by event, up to an earlier one.
import json
import os
import subprocess
import time

import gdb

ASK = json.loads(os.environ["MVE_REPLAY"])
LOOK_S = 0.05


class Event:
    """A line of `mve log DIR show`: NUMBER THREAD TIME CALL..."""
    def __init__(self, line):
        number, tid, self.time, self.call = line.split(None, 3)
        self.number, self.tid = int(number), int(tid)


def events(*filters):
    """Of a call or a connection that there is not, mve log's word."""
    p = subprocess.Popen([ASK["mve"], "log", ASK["folder"], "show", *filters],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         errors="replace")
    none = True
    try:
        for line in p.stdout:
            none = False
            yield Event(line)
        said = p.stderr.readline().strip()
        if p.wait() and none:
            raise gdb.GdbError(said.removeprefix("mve: "))
    finally:
        p.stderr.close()
        p.kill()
        p.wait()


class Replay:
    def __init__(self):
        self.process, self.name, self.tries = None, None, 0
        self.at, self.stands = None, False      # the event; it stands there, or is behind it
        self.signal = None

    # --- the session ----------------------------------------------------------------------

    def status(self):
        p = subprocess.run([ASK["mve"], "status", self.name, "--json"], capture_output=True)
        return json.loads(p.stdout).get("replay") if not p.returncode else None

    def begin(self, until):
        """Anew, up to there; the debugger is in it when it stands."""
        self.end()
        self.tries += 1
        self.name = f"gdb-{os.getpid()}-{self.tries}"
        command = ["--", *ASK["command"]] if ASK["command"] else []
        # Of a session of its own: ^C is for the debugger.
        self.process = subprocess.Popen(
            [ASK["mve"], "replay", *ASK["options"], "-n", self.name, "--until", str(until),
             ASK["folder"], *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        while self.process.poll() is None:
            now = self.status()
            if now and now["stands"]:
                self.stand(now)
                return
            time.sleep(LOOK_S)
        said = self.process.stdout.read().decode(errors="replace")
        self.process = None
        raise gdb.GdbError(f"it does not come there:\n{said}")

    def end(self):
        if gdb.selected_inferior().pid:
            gdb.execute("detach", to_string=True)
        if self.process:
            subprocess.run([ASK["mve"], "stop", "--kill", self.name], capture_output=True)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self.process = None

    # --- where it is ------------------------------------------------------------------------

    def stand(self, now):
        """At the event: the debugger is in its process, its thread is selected, and the frame
        that made the call."""
        self.at, self.stands = now["event"], True
        if gdb.selected_inferior().pid != now["pid"]:
            if gdb.selected_inferior().pid:
                gdb.execute("detach", to_string=True)
            gdb.execute(f"attach {now['pid']}", to_string=True)
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == now["tid"]:
                thread.switch()
        frame = gdb.newest_frame()
        frame = program_frame(frame, is_executables) or program_frame(frame)
        if frame:
            frame.select()
        self.where()

    def event(self):
        if not self.at:
            raise gdb.GdbError("the replay has not begun: mve go EVENT begins it")
        for e in events("--event", str(self.at)):
            return e
        return None

    def where(self):
        e = self.event()
        print("" if self.stands else "behind ", end="")
        print(f"event {self.at}, thread {e.tid}, {e.time}: {e.call.rstrip()}" if e else
              f"event {self.at}: no call")

    # --- forwards ---------------------------------------------------------------------------

    def forwards(self, event):
        """To the event, or until the program stops for another reason, or is over."""
        pid = gdb.selected_inferior().pid
        # A process: while the program runs no thread of ours does.  And a signal that no
        # program can block; it is for the debugger alone.
        go = subprocess.Popen(["sh", "-c", '"$0" go "$1" "$2" >/dev/null 2>&1 && [ "$2" != end ] '
                               '&& kill -STOP "$3" 2>/dev/null', ASK["mve"], self.name, str(event), str(pid)])
        self.stands, self.signal = False, None
        try:
            gdb.execute("continue", to_string=True)
            # A page that mve watches, in its own code: it is handled there.
            while self.signal == "SIGSEGV" and not is_programs(gdb.newest_frame()):
                gdb.execute("continue", to_string=True)
        finally:
            # Where its process has ended others go on to the event.
            if gdb.selected_inferior().pid:
                go.terminate()
            go.wait()
        now = self.status()
        if now and now["stands"] and now["event"] == event:
            self.stand(now)
        elif not gdb.selected_inferior().pid:
            self.over()
        else:
            print(f"stopped behind event {self.at}" + (f": {self.signal}" if self.signal else ""))
            gdb.execute("frame")

    def over(self):
        said = ""
        if self.process:
            try:
                self.process.wait(20)
                said = self.process.stdout.read().decode(errors="replace")
            except subprocess.TimeoutExpired:
                pass
            self.process, self.at = None, None
        print(f"{said}the replay is over; mve go EVENT begins it anew")

    def go(self, event):
        alive = self.process and self.process.poll() is None and gdb.selected_inferior().pid
        if alive and self.at and event > self.at:
            self.forwards(event)
        elif alive and self.stands and event == self.at:
            self.where()
        else:
            self.begin(event)


replay = Replay()


# --- what belongs to the program --------------------------------------------------------------

def file_at(pc):
    """The file whose code stands there, as the kernel says; None: mve's, or made by a compiler."""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps") as maps:
        for line in maps:
            span, *_, last = line.split(None, 5)
            low, high = (int(end, 16) for end in span.split("-"))
            if low <= pc < high:
                return last.strip() if last.startswith("/") and "/memfd:" not in last else None
    return None


def is_programs(frame):
    return file_at(frame.pc()) is not None


def is_executables(frame):
    return file_at(frame.pc()) == os.readlink(f"/proc/{gdb.selected_inferior().pid}/exe")


def program_frame(frame, is_one=is_programs, most=60):
    """The newest that is not mve's: whose code is in a file that the debugger knows."""
    while frame and most and not is_one(frame):
        frame, most = frame.older(), most - 1
    return frame if frame and is_one(frame) else None


class Hide:
    """bt begins where the program has made its call."""
    name, priority, enabled = "mve", 100, True

    def filter(self, frames):
        shown = False
        for f in frames:
            shown = shown or is_programs(f.inferior_frame())
            if shown:
                yield f


def stopped(event):
    replay.signal = getattr(event, "stop_signal", None)


# --- commands -----------------------------------------------------------------------------------

def filters(words):
    """`call NAME`, `conn N`, `thread N`, `process N`; without one: the same thread."""
    of = {"call": "--call", "conn": "--conn", "thread": "--pid", "process": "--pid"}
    out = []
    if len(words) % 2:
        raise gdb.GdbError("of what kind: call NAME, conn N, thread N or process N")
    for kind, value in zip(words[::2], words[1::2]):
        if kind not in of:
            raise gdb.GdbError(f"not a kind: {kind} (call, conn, thread or process)")
        out += [of[kind], value]
    return out or ["--pid", str(replay.event().tid)]


class Mve(gdb.Command):
    """A replay of a recording; mve where, next, back, go, end."""
    def __init__(self):
        super().__init__("mve", gdb.COMMAND_RUNNING, prefix=True)


class Where(gdb.Command):
    """The event at which the replay stands: its call has been made, and not answered."""
    def __init__(self):
        super().__init__("mve where", gdb.COMMAND_STATUS)

    def invoke(self, text, tty):
        replay.where()


class Next(gdb.Command):
    """To the next event of the thread; mve next call read: of that call; mve next conn 7: of
that connection, as mve log connections numbers it; mve next thread TID, process PID."""
    def __init__(self):
        super().__init__("mve next", gdb.COMMAND_RUNNING)

    def invoke(self, text, tty):
        asked = filters(gdb.string_to_argv(text))
        here = replay.event().number
        for e in events("--after", str(here), *asked):
            replay.go(e.number)
            return
        raise gdb.GdbError("there is none behind it")


class Back(gdb.Command):
    """To the event before; mve back call read, conn 7, ...: as mve next. The replay begins
anew for that: breakpoints stay, what was changed in memory does not."""
    def __init__(self):
        super().__init__("mve back", gdb.COMMAND_RUNNING)

    def invoke(self, text, tty):
        asked = filters(gdb.string_to_argv(text))
        last = None
        for e in events("--before", str(replay.event().number), *asked):
            last = e if not last or e.number > last.number else last
        if not last:
            raise gdb.GdbError("there is none before it")
        replay.begin(last.number)


def time_event(text):
    try:
        return next((e.number for e in events("--from", text)), None)
    except gdb.GdbError:
        return None


class Go(gdb.Command):
    """mve go EVENT|TIME|last: to the event of this number in mve log show, or at this time
(13:37:00.5, or +90: seconds from the beginning). An earlier one begins the replay anew."""
    def __init__(self):
        super().__init__("mve go", gdb.COMMAND_RUNNING)

    def invoke(self, text, tty):
        text = text.strip()
        if text.isdigit() and int(text):
            number = int(text)
            if number > 1 and not next(events("--after", str(number - 1)), None):
                raise gdb.GdbError(f"the recording ends before event {number}")
            replay.go(number)
            return
        if text == "last":
            number = max(e.number for e in events())
        else:
            number = time_event(text)
        if not number:
            raise gdb.GdbError(f"not an event or a time of the recording: {text}")
        replay.go(number)


class End(gdb.Command):
    """To the end of the recording, or of the program."""
    def __init__(self):
        super().__init__("mve end", gdb.COMMAND_RUNNING)

    def invoke(self, text, tty):
        replay.event()      # or it has not begun
        replay.forwards("end")


for command in (Mve, Where, Next, Back, Go, End):
    command()
gdb.frame_filters["mve"] = Hide()
gdb.events.stop.connect(stopped)
for line in ("set confirm off", "set pagination off", "handle SIGSYS SIGILL nostop noprint pass",
             "handle SIGSTOP stop print nopass",
             "set print thread-events off"):
    gdb.execute(line, to_string=True)
gdb.events.gdb_exiting.connect(lambda event: replay.end())
try:
    replay.begin(ASK["until"])
except gdb.GdbError as wrong:
    print(wrong)
