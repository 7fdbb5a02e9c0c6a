"""Small line charts as SVG text, without any library."""

import html
import math

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48
COLORS = ["#2463eb", "#d9480f", "#2b8a3e", "#862e9c"]


def nice_ticks(low, high, wanted=6):
    """Round numbers from low to high, at most about `wanted`."""
    if high <= low:
        high = low + 1
    raw = (high - low) / max(1, wanted)
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    first = math.ceil(low / step)
    return [first * step + i * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def log_ticks(low, high):
    return [10 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def label(value):
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"


class Axis:
    def __init__(self, values, start, end, log=False, from_zero=True):
        self.log, self.start, self.end = log, start, end
        low, high = min(values), max(values)
        self.low = max(low, 1e-9) if log else (min(0, low) if from_zero else low)
        self.high = high if high > self.low else self.low + 1
        self.ticks = log_ticks(self.low, self.high) if log else nice_ticks(self.low, self.high)
        if log:
            self.low, self.high = self.ticks[0], self.ticks[-1]
        elif from_zero:
            self.high = max(self.high * 1.05, self.ticks[-1])

    def place(self, value):
        if self.log:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def chart(title, x_name, y_name, lines, *, x_log=False, marks=(), dots=False):
    """`lines` is [(name, [(x, y)…])…]; `marks` is [(x, text)…], drawn as vertical lines.

    With `dots` the points are not joined. Gives the SVG text, or nothing when there is no point."""
    lines = [(name, points) for name, points in lines if points]
    xs = [x for _, points in lines for x, _ in points]
    ys = [y for _, points in lines for _, y in points]
    if not xs:
        return ""
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT, log=x_log)
    y_axis = Axis(ys, HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{html.escape(title)}</text>']
    out += _grid(x_axis, y_axis, x_name, y_name)
    for x, text in marks:
        at = x_axis.place(x)
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#888" '
                   'stroke-dasharray="4 3"/>')
        out.append(f'<text x="{at + 4:.1f}" y="{TOP + 12}" fill="#555">{html.escape(text)}</text>')
    for i, (name, points) in enumerate(lines):
        color = COLORS[i % len(COLORS)]
        places = [(f"{x_axis.place(x):.1f}", f"{y_axis.place(y):.1f}") for x, y in points]
        if dots:
            shape = "".join(f"M{x} {y}h.1" for x, y in places)
            out.append(f'<path d="{shape}" stroke="{color}" stroke-width="2" stroke-linecap="round"/>')
        else:
            shape = " ".join(f"{x},{y}" for x, y in places)
            out.append(f'<polyline points="{shape}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        out.append(f'<text x="{WIDTH - RIGHT}" y="{20 + 14 * i}" text-anchor="end" '
                   f'fill="{color}">{html.escape(name)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def _grid(x_axis, y_axis, x_name, y_name):
    out = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#333">{label(tick)}</text>')
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#f0f0f0"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#333">{label(tick)}</text>')
    out.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle" '
               f'fill="#333">{html.escape(x_name)}</text>')
    out.append(f'<text x="14" y="{(TOP + bottom) / 2:.0f}" text-anchor="middle" fill="#333" '
               f'transform="rotate(-90 14 {(TOP + bottom) / 2:.0f})">{html.escape(y_name)}</text>')
    return out
