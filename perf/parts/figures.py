"""Numbers and how they are shown: medians, quartiles, columns, targets."""

import statistics
import textwrap

# The targets: what make bench must say met or not met about.
CALL_OVER_NS = 20
SERVER_CPU_RATIO = 1.02
STARTUP_OVER_MS = 50
RECORD_OVER_NS = 30
LEADER_CPU_RATIO = {"redis": 1.10, "memcached": 1.05, "nginx": 1.10,
                    "lighttpd": 1.05}
FURTHER_FOLLOWER = 1.02
RECORDED_RATIO = 1.03
FORKS_ALONE, FORKS_FOLLOWED = 1.5, 2.0
QUIET_SHARE = 0.005
PROCESS_KIB = 1024
THREAD_KIB = 64

WIDTH = 80


def median(samples):
    return statistics.median(samples)


def quartiles(samples):
    """The first and third quartile; of fewer than three, the extremes."""
    if len(samples) < 3:
        return min(samples), max(samples)
    cuts = statistics.quantiles(samples, n=4, method="inclusive")
    return cuts[0], cuts[2]


def summary(samples):
    low, high = quartiles(samples)
    return {"median": median(samples), "q1": low, "q3": high,
            "min": min(samples), "max": max(samples), "samples": samples}


def digits(value):
    """Enough digits to compare by, and no more."""
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


def number(value, places=None):
    places = digits(value) if places is None else places
    return f"{value:.{places}f}"


def span(low, high, places=None):
    places = digits(high) if places is None else places
    return f"{low:.{places}f}..{high:.{places}f}"


def signed(value):
    return f"{value:+.{digits(value)}f}"


def verdict(value, limit, low=None, high=None):
    """With quartiles: "(~)" when the limit lies between them."""
    near = low is not None and low <= limit <= high
    return ("met" if value <= limit else "not met") + (" (~)" if near else "")


def columns(widths, cells):
    """One line: the first widths < 0 are left-aligned."""
    out = []
    for width, cell in zip(widths, cells):
        out.append(f"{cell:<{-width}}" if width < 0 else f"{cell:>{width}}")
    return "".join(out).rstrip()


def rule():
    return "-" * WIDTH


def troubles(rows):
    """The reasons that a table cut short, once each and whole."""
    for text in dict.fromkeys(row["trouble"] for row in rows):
        if text and len(text) > 40:
            yield from textwrap.wrap(text, WIDTH, subsequent_indent="    ")


def shorten(text, width):
    return text if len(text) <= width else text[:width - 3] + "..."
