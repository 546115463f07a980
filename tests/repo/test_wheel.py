"""The built wheel holds the package, all of it, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel under test, or one that is built here when run outside scripts/check."""
    given = os.environ.get("SHEARPIN_WHEEL")
    if given is None:
        folder = tmp_path_factory.mktemp("dist")
        build = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation"]
        subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True)
        given = str(next(folder.glob("*.whl")))
    return zipfile.ZipFile(Path(given))


def metadata(wheel: zipfile.ZipFile) -> str:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


def test_holds_exactly_the_package(wheel: zipfile.ZipFile) -> None:
    package = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package == source
    assert "shearpin/py.typed" in package


def test_metadata_is_complete(wheel: zipfile.ZipFile) -> None:
    text = metadata(wheel)
    assert re.search(r"^License-Expression: MIT$", text, re.MULTILINE)
    assert re.search(r"^Requires-Python: >=3\.11$", text, re.MULTILINE)
    assert "Typing :: Typed" in text
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    entry = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "shearpin = shearpin.cli:main" in wheel.read(entry).decode()


def test_base_dependencies_are_few(wheel: zipfile.ZipFile) -> None:
    required = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata(wheel), re.MULTILINE)
    assert sorted(required) == [
        *("click", "genai-prices", "jinja2", "langgraph", "orjson", "rich", "tenacity"),
    ]
