"""Every public name, command and setting is documented, and what the pages say is so."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path

import click
import pytest

import shearpin
import shearpin.boundary
from shearpin.cli import main
from shearpin.core.breaker import TRANSITIONS
from shearpin.core.detectors import DEFAULT_DETECTORS

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPE = ["Use", "Defaults", "Diagram", "Anti-patterns"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", shearpin.__all__)
def test_every_public_name_is_in_the_reference_and_has_a_docstring(name: str) -> None:
    assert re.search(rf"^\.\. auto\w+:: shearpin\.{name}$", read("docs/api.md"), re.MULTILINE)
    value = getattr(shearpin, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)


@pytest.mark.parametrize("name", shearpin.boundary.__all__)
def test_every_public_name_of_the_boundary_is_on_one_of_its_pages(name: str) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "boundary").iterdir())
    directive = rf"^(?:\.\. auto\w+::|```\{{settings\}}) shearpin\.boundary\.(\w+\.)*{name}$"
    assert re.search(directive, pages, re.MULTILINE)
    value = getattr(shearpin.boundary, name)
    assert inspect.getdoc(value) or not (inspect.isclass(value) or inspect.isfunction(value))


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_documented(command: str) -> None:
    page = read("docs/cli.md")
    assert f":prog: shearpin {command}\n" in page
    assert main.commands[command].help
    undocumented = [
        param.name
        for param in main.commands[command].params
        if isinstance(param, click.Option) and not param.help
    ]
    assert not undocumented


@pytest.mark.parametrize("detector", DEFAULT_DETECTORS, ids=lambda d: d.family)
def test_every_detector_has_a_page_in_the_one_shape(detector: object) -> None:
    family: str = detector.family  # type: ignore[attr-defined]
    page = read(f"docs/detectors/{family}.md")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == SHAPE
    assert re.search(
        rf"^```{{settings}} shearpin\.(\S+\.)?{type(detector).__name__}$", page, re.MULTILINE
    )


@pytest.mark.parametrize("detector", DEFAULT_DETECTORS, ids=lambda d: d.family)
def test_every_detector_setting_is_described_in_its_docstring(detector: object) -> None:
    text = inspect.getdoc(type(detector)) or ""
    for field in dataclasses.fields(detector):  # type: ignore[arg-type]
        assert re.search(rf"^\s+{field.name}: \S", text, re.MULTILINE), field.name


def test_the_breaker_table_is_what_the_docs_draw() -> None:
    page = read("docs/breaker.md")
    assert "```{breaker-diagram}" in page
    assert "```{breaker-table}" in page
    assert TRANSITIONS


def test_readme_and_test_command_install_the_same_way() -> None:
    readme = read("README.md")
    check = read("scripts/check")
    assert "bash scripts/check" in readme
    assert "exec bash scripts/check" in read(".ci/run")
    install = ".venv/bin/pip install -qq -c constraints.txt '.[langchain]'"
    assert install in check
    assert install in readme


def test_constraints_pin_every_direct_dependency() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    listed = list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        listed += extra
    for group in project["dependency-groups"].values():
        listed += [entry for entry in group if isinstance(entry, str)]
    wanted = {re.split(r"[\[<>=~! ]", entry)[0].lower() for entry in listed}
    pinned = {
        line.split("==")[0].lower() for line in read("constraints.txt").splitlines() if "==" in line
    }
    assert wanted <= pinned


def test_the_documented_configuration_file_is_a_valid_one(tmp_path: Path) -> None:
    (example,) = TOML.findall(read("docs/configuration.md"))
    path = tmp_path / "guard.toml"
    path.write_text(example, encoding="utf-8")
    guard = shearpin.Guard.from_file(path)
    assert guard.tools["get_status"].polling
    assert "monologue" not in {detector.family for detector in guard.detectors}


@pytest.mark.parametrize("config", [shearpin.Guard, shearpin.BreakerSettings, shearpin.ToolFacts])
def test_every_setting_is_described_in_its_docstring(config: type) -> None:
    text = inspect.getdoc(config) or ""
    for field in dataclasses.fields(config):
        assert re.search(rf"^\s+{field.name}: \S", text, re.MULTILINE), field.name
