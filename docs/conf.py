"""Sphinx configuration; built with warnings as errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Shearpin"
author = "Shearpin contributors"
copyright = "Shearpin contributors"
release = version = installed_version("shearpin")

extensions = [
    "myst_parser",
    "shearpin_docs",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_title = f"Shearpin {release}"

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Source"]
nitpicky = False
