"""The page of `shearpin tune`: what more catches cost in false alarms. Needs nothing else."""

from __future__ import annotations

from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["Point", "TuningPage", "render_tuning"]

_WIDTH: Final = 640
_HEIGHT: Final = 300
_MARGIN: Final = 46


class Point(NamedTuple):
    """One candidate, in percent. `patience` is set where it lies on the curve."""

    name: str
    wrong_nudges: float
    wrong_stops: float
    caught: float
    saved: float
    patience: float | None = None
    chosen: bool = False


class TuningPage(NamedTuple):
    """What the page shows.

    Attributes:
        chosen: the changes that were chosen, in words.
        points: all candidates.
        measures: headings of the numbers in `lines`.
        lines: for each source held out its name, what was chosen without it, and its numbers.
    """

    chosen: str
    points: tuple[Point, ...]
    measures: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


class _Dot(NamedTuple):
    x: float
    y: float
    point: Point


class _Chart(NamedTuple):
    title: str
    dots: list[_Dot]
    curve: str
    right: float


def render_tuning(page: TuningPage, title: str = "Shearpin: tuning") -> str:
    """The page. Everything that comes from a recording is escaped; scripts are forbidden."""
    environment = Environment(
        loader=PackageLoader("shearpin", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    charts = [
        _chart("Labelled loops caught, %", page, 0),
        _chart("Steps of failed runs saved, %", page, 1),
    ]
    return environment.get_template("tuning.html.j2").render(
        title=title, page=page, charts=charts, width=_WIDTH, height=_HEIGHT, margin=_MARGIN
    )


def _chart(title: str, page: TuningPage, which: int) -> _Chart:
    right = max((point.wrong_nudges for point in page.points), default=0.0) or 1.0
    dots = [
        _Dot(
            round(_MARGIN + (_WIDTH - 2 * _MARGIN) * point.wrong_nudges / right, 1),
            round(_HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * _height(point, which) / 100, 1),
            point,
        )
        for point in page.points
    ]
    curve = sorted(
        (dot for dot in dots if dot.point.patience is not None or dot.point.name == "start"),
        key=lambda dot: dot.point.patience if dot.point.patience is not None else 0.5,
    )
    return _Chart(title, dots, " ".join(f"{dot.x},{dot.y}" for dot in curve), right)


def _height(point: Point, which: int) -> float:
    return point.saved if which else point.caught
