"""Plots of what was measured, as SVG: grouped bars, curves, and shares below a value.

Colours are the Okabe-Ito ones, which colour-blind readers can tell apart.
"""

import math
from xml.sax.saxutils import escape

COLOURS = ("#999999", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")
WIDTH, HEIGHT = 900, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 70, 60


def _text(x, y, words, anchor="middle", size=12, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-size="{size}"{more}>{escape(str(words))}</text>')


def _line(x1, y1, x2, y2, colour="#000", width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"/>')


def _nice(most):
    """A round step, so that four to ten of them reach the top."""
    step = 10 ** math.floor(math.log10(most or 1))
    while most / step < 4:
        step /= 2 if most / step >= 2 else 5
    return step


class Frame:
    """Axes, title and legend; y runs from 0 to the top."""

    def __init__(self, title, unit, series, most, room=0.2):
        self.step = _nice(most)
        self.top = self.step * math.ceil(most / self.step + room)
        self.parts = [_text(WIDTH / 2, 22, title, size=15),
                      _text(LEFT, TOP - 10, unit, "start", 11)]
        x = LEFT
        for i, name in enumerate(series):
            colour = COLOURS[i % len(COLOURS)]
            self.parts += [f'<rect x="{x}" y="34" width="11" height="11" '
                           f'fill="{colour}"/>',
                           _text(x + 15, 44, name, "start")]
            x += 30 + 7 * len(name)
        for n in range(int(self.top / self.step + 0.5) + 1):
            value = n * self.step
            self.parts += [_line(LEFT, self.y(value), WIDTH - RIGHT,
                                 self.y(value), "#ddd"),
                           _text(LEFT - 6, self.y(value) + 4, f"{value:g}",
                                 "end", 11)]

    def y(self, value):
        return HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)

    def limit(self, value, words):
        """A target, as a line across."""
        self.parts += [_line(LEFT, self.y(value), WIDTH - RIGHT,
                             self.y(value), "#d55e00", 1.5),
                       _text(WIDTH - RIGHT, self.y(value) - 4, words, "end",
                             11, ' fill="#d55e00"')]

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{HEIGHT}" font-family="sans-serif">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *self.parts, _line(LEFT, self.y(0), WIDTH - RIGHT, self.y(0)),
            "</svg>", ""])


def bars(title, unit, series, groups, limit=None):
    """groups: [(label, [summary or number or None, one for each series])]."""
    groups = [(label, [v if isinstance(v, dict) or v is None else
                       {"median": v} for v in values])
              for label, values in groups]
    tops = [v.get("q3", v["median"]) for _, values in groups for v in values
            if v]
    f = Frame(title, unit, series, max([*tops, limit[0] if limit else 0]))
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = room * 0.8 / len(series)
    for g, (label, values) in enumerate(groups):
        start = LEFT + room * (g + 0.1)
        f.parts.append(_text(start + room * 0.4, HEIGHT - BOTTOM + 18, label))
        for i, value in enumerate(values):
            if value:
                _bar(f, start + i * width, width, value, i)
    if limit:
        f.limit(*limit)
    return f.svg()


def _bar(f, x, width, value, i):
    y, middle = f.y(max(0, value["median"])), x + width / 2
    f.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.92:.1f}" '
                   f'height="{f.y(0) - y:.1f}" '
                   f'fill="{COLOURS[i % len(COLOURS)]}"/>')
    if "q1" in value:
        f.parts.append(_line(middle, f.y(max(0, value["q1"])), middle,
                             f.y(max(0, value["q3"])), "#333"))
    f.parts.append(_text(middle, f.y(max(value["median"],
                                         value.get("q3", 0))) - 4,
                         f"{value['median']:.3g}", size=9))


def curves(title, across, unit, series, limit=None):
    """series: [(label, [(x, summary)])]; x from 0 to 100; spreads are lines upright."""
    tops = [v.get("q3", v["median"]) for _, points in series for _, v in points]
    f = Frame(title, unit, [label for label, _ in series],
              max([*tops, limit[0] if limit else 0]))

    def at(x):
        return LEFT + x / 100 * (WIDTH - LEFT - RIGHT)

    for x in range(0, 101, 10):
        f.parts.append(_text(at(x), HEIGHT - BOTTOM + 18, x))
    f.parts.append(_text(WIDTH / 2, HEIGHT - BOTTOM + 38, across))
    for i, (_, points) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{at(x):.1f},{f.y(v['median']):.1f}" for x, v in points)
        f.parts.append(f'<polyline points="{path}" fill="none" stroke-width="2" '
                       f'stroke="{colour}"/>')
        f.parts += [_line(at(x), f.y(v["q1"]), at(x), f.y(v["q3"]), colour)
                    for x, v in points if "q1" in v]
    if limit:
        f.limit(*limit)
    return f.svg()


def shares(title, unit, series):
    """How many of the samples lie below a value; x is logarithmic.

    series: [(label, samples)]
    """
    every = [v for _, samples in series for v in samples]
    low = math.floor(math.log10(min(every)))
    high = max(low + 1, math.ceil(math.log10(max(every))))
    f = Frame(title, "% of the runs", [label for label, _ in series], 100, 0)

    def x(value):
        return LEFT + (math.log10(value) - low) / (high - low) * (
            WIDTH - LEFT - RIGHT)

    for power in range(low, high + 1):
        f.parts += [_line(x(10 ** power), TOP, x(10 ** power),
                          HEIGHT - BOTTOM, "#ddd"),
                    _text(x(10 ** power), HEIGHT - BOTTOM + 18,
                          f"{10 ** power:g} {unit}")]
    for i, (_, samples) in enumerate(series):
        points = [(x(v), f.y(100 * (n + 1) / len(samples)))
                  for n, v in enumerate(sorted(samples))]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        f.parts.append(f'<polyline points="{path}" fill="none" stroke-width="2"'
                       f' stroke="{COLOURS[i % len(COLOURS)]}"/>')
    return f.svg()
