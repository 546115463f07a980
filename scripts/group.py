"""Print a dependency group of pyproject.toml, one requirement a line.

Older pips know no `--group`; this is the same thing for the pip that any Python 3.11 brings.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def requirements(groups: dict[str, list[str | dict[str, str]]], name: str) -> list[str]:
    """The requirements of group `name`, included groups first, in the order of the file."""
    found: list[str] = []
    for entry in groups[name]:
        if isinstance(entry, str):
            found.append(entry)
        else:
            found.extend(requirements(groups, entry["include-group"]))
    return found


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    print("\n".join(requirements(project["dependency-groups"], sys.argv[1])))
