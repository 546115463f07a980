"""House rules that no linter knows: see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted((ROOT / "src").rglob("*.py"))
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".cfg",
    ".yml",
    ".yaml",
    ".html",
    ".j2",
    ".json",
    "",
}
MACHINE = re.compile(
    r"/w[o]rk/|/f[a]rm/|/o[p]t/|/h[o]me/\w|/r[o]ot/|p[y]thonhosted|p[y]pi\.org|r[e]gistry\.npm"
)


def repository_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_are_short_and_open_with_their_contract(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 350, "a module that needs a table of contents is two modules"
    tree = ast.parse(text)
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_fit_the_eye(path: Path) -> None:
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= 60
    ]
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_exception_is_swallowed_and_nothing_is_left_undone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    swallowed = [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler)
        and all(isinstance(line, ast.Pass) for line in node.body)
    ]
    assert not swallowed, "say why, count it or let it rise"
    assert not re.findall(r"\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b|raise NotImplementedError", text)


def test_public_modules_import_lazily_and_annotations_are_postponed() -> None:
    missing = [
        name_of(path)
        for path in MODULES
        if (text := path.read_text(encoding="utf-8")).count("\n") > 5
        and ("def " in text or "class " in text)
        and "from __future__ import annotations" not in text
    ]
    assert not missing


def test_nothing_names_a_machine_or_a_download_host() -> None:
    found = [
        f"{name_of(path)}:{number}"
        for path in repository_files()
        if path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if MACHINE.search(line)
    ]
    assert not found


def test_tests_do_not_sleep() -> None:
    sleeping = [
        f"{name_of(path)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert not sleeping, "advance a manual clock instead"


def test_every_part_of_the_package_has_its_place_in_the_layers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = " ".join(project["tool"]["importlinter"]["contracts"][0]["layers"])
    parts = {path.stem for path in (ROOT / "src" / "shearpin").iterdir() if path.suffix == ".py"}
    parts |= {path.parent.name for path in (ROOT / "src" / "shearpin").glob("*/__init__.py")}
    placed = set(re.findall(r"shearpin\.(\w+)", layers))
    assert parts - {"__init__"} == placed
