"""Tables and diagrams that are made from the code, so that they cannot disagree with it.

`{settings} shearpin.Repeats`   the fields of a frozen config: default, meaning (from its docstring)
`{detector-list}`               the default detectors, what each is about, its ceiling
`{breaker-table}`               the breaker's transition table
`{breaker-diagram}`             the same table drawn
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from breaker_diagram import draw, rows
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.findings import Severity

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_CODE = re.compile(r"(?<![`:])`([^`\n]+)`(?![`_])")
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def described(config: type) -> dict[str, str]:
    """What the `Attributes` section of a class's docstring says of each field."""
    doc = inspect.getdoc(config) or ""
    section = re.search(r"^Attributes:\n((?:(?: {4}.*)?\n)+)", doc + "\n", re.MULTILINE)
    if section is None:
        raise ValueError(f"{config.__name__} has no Attributes section")
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section.group(1))}


def settings(config: type) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each field of a frozen dataclass."""
    meaning = described(config)
    return [
        (field.name, _shown(_default(field)), meaning[field.name])
        for field in dataclasses.fields(config)
    ]


def _default(field: dataclasses.Field[object]) -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    factory = field.default_factory
    return factory() if factory is not dataclasses.MISSING else None


def _shown(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f'"{value.name.lower()}"'
    if isinstance(value, str):
        return f'"{value}"'
    text = repr(value)
    return text if len(text) <= 40 else "..."


def _table(header: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *body]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


class SettingsDirective(SphinxDirective):
    """The fields of a frozen config as a table."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        config = getattr(import_module(module), name)
        body = [(f"`{field}`", f"`{default}`", text) for field, default, text in settings(config)]
        return self.parse_text_to_nodes(_table(("setting", "default", "meaning"), body))


class DetectorListDirective(SphinxDirective):
    """The default detectors: link to the page of each, first line of its module, its ceiling."""

    def run(self) -> list[nodes.Node]:
        body: list[tuple[str, ...]] = []
        for detector in DEFAULT_DETECTORS:
            doc = inspect.getdoc(import_module(type(detector).__module__)) or ""
            family, _, about = doc.splitlines()[0].partition(": ")
            if family != detector.family:
                raise ValueError(f"{type(detector).__module__} opens with {family!r}")
            ceiling = getattr(detector, "ceiling", None)
            strongest = ceiling.label if isinstance(ceiling, Severity) else ""
            body.append((f"[{family}]({family}.md)", about, strongest))
        return self.parse_text_to_nodes(_table(("family", "fires on", "at most"), body))


class BreakerTableDirective(SphinxDirective):
    """The breaker's transition table."""

    def run(self) -> list[nodes.Node]:
        body = [tuple(f"`{cell}`" for cell in row) for row in rows()]
        return self.parse_text_to_nodes(_table(("from", "signal", "to"), body))


class BreakerDiagramDirective(SphinxDirective):
    """The breaker's transition table, drawn."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", draw(), format="html")]


def code_is_code(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Docstrings mark code with single backticks; reStructuredText wants two."""
    lines[:] = [_CODE.sub(r"``\1``", line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", code_is_code, priority=400)
    app.add_directive("settings", SettingsDirective)
    app.add_directive("detector-list", DetectorListDirective)
    app.add_directive("breaker-table", BreakerTableDirective)
    app.add_directive("breaker-diagram", BreakerDiagramDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
