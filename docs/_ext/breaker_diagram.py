"""The breaker's transition table as rows and as a picture (SVG, in the colours of the page).

States stand in a row, from most to least patient; what goes forward arches above, what goes back
hangs below. Signals between the same two states share an arrow.
"""

from __future__ import annotations

from html import escape
from itertools import groupby

from shearpin.core.breaker import SIGNALS, STATES, TRANSITIONS

BOX_WIDTH, BOX_HEIGHT, GAP = 120, 40, 90
PITCH = BOX_WIDTH + GAP
LIFT = 46
"""How much higher an arrow arches for each state that it passes over."""

STYLE = (
    "max-width:100%;height:auto;color:var(--color-foreground-primary);font-family:var(--font-stack)"
)


def rows() -> list[tuple[str, str, str]]:
    """The transition table: from, signal, to."""
    return [(source, signal, target) for (source, signal), target in TRANSITIONS.items()]


def arrows() -> list[tuple[int, int, list[str]]]:
    """Index of source and target, and the signals that lead from one to the other."""
    ordered = sorted((STATES.index(a), STATES.index(b), signal) for a, signal, b in rows())
    return [
        (source, target, [signal for _, _, signal in group])
        for (source, target), group in groupby(ordered, key=lambda arrow: arrow[:2])
    ]


def draw() -> str:
    """The picture, as a figure element."""
    found = arrows()
    spans = [target - source for source, target, _ in found]
    above, below = max(0, *spans) * LIFT + 30, max(0, *(-span for span in spans)) * LIFT + 44
    width = PITCH * len(STATES) - GAP + 40
    height = above + BOX_HEIGHT + below
    parts = [_box(number, state, above) for number, state in enumerate(STATES)]
    parts += [_arrow(arrow, _ports(arrow, found), above) for arrow in found]
    legend = "".join(
        f"<dt><code>{escape(signal)}</code></dt><dd>{escape(meaning)}</dd>"
        for signal, meaning in SIGNALS.items()
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="States of the breaker" '
        f'style="{STYLE}" xmlns="http://www.w3.org/2000/svg">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker>'
        f"</defs>{''.join(parts)}</svg><dl>{legend}</dl>"
    )


def _ports(
    arrow: tuple[int, int, list[str]], found: list[tuple[int, int, list[str]]]
) -> tuple[float, float]:
    """Where on its box an arrow leaves and arrives, so that no two of them touch."""
    source, target, _ = arrow
    forward = target > source

    def port(box: int) -> float:
        ends = [
            (box == a, b if box == a else a)
            for a, b, _ in found
            if (b > a) is forward and box in (a, b)
        ]
        # The longer an arrow, the further from its far end it is: arches nest.
        here = (box == source, target if box == source else source)
        slots = sorted(ends, key=lambda end: (end[1] > box, -end[1] if end[1] > box else end[1]))
        return (slots.index(here) + 1) / (len(slots) + 1)

    return port(source), port(target)


def _left(number: int) -> int:
    return 20 + number * PITCH


def _box(number: int, state: str, top: int) -> str:
    x = _left(number)
    return (
        f'<rect x="{x}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="none" '
        f'stroke="currentColor" stroke-width="1.5"/><text x="{x + BOX_WIDTH / 2}" '
        f'y="{top + BOX_HEIGHT / 2 + 5}" text-anchor="middle" font-size="15">{escape(state)}</text>'
    )


def _arrow(arrow: tuple[int, int, list[str]], ports: tuple[float, float], top: int) -> str:
    source, target, signals = arrow
    from_x = _left(source) + ports[0] * BOX_WIDTH
    to_x = _left(target) + ports[1] * BOX_WIDTH
    up = target > source
    edge = top if up else top + BOX_HEIGHT
    # A cubic curve reaches three quarters of the way to its control points.
    peak = abs(target - source) * LIFT * (-1 if up else 1)
    control = edge + peak * 4 / 3
    label_y = edge + peak + (-5 if up else 15)
    return (
        f'<path d="M{from_x:.0f},{edge} C{from_x:.0f},{control:.0f} {to_x:.0f},{control:.0f} '
        f'{to_x:.0f},{edge}" fill="none" stroke="currentColor" marker-end="url(#tip)"/>'
        f'<text x="{(from_x + to_x) / 2:.0f}" y="{label_y:.0f}" text-anchor="middle" '
        f'font-size="12" paint-order="stroke" stroke="var(--color-background-primary)" '
        f'stroke-width="5" fill="currentColor">{escape(", ".join(signals))}</text>'
    )
