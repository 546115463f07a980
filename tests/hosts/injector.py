"""Breaks one function of the guard at a time, whichever they are: no list of seams to keep up.

`calls_of` records every function of the package that a piece of work calls; `fault_in` makes a call
of one of them raise. Both use the interpreter's profiling hook, so the code under test is the real
one, and no seam has to be made for them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import shearpin

HOME = str(Path(shearpin.__file__).parent)


class InjectedError(RuntimeError):
    """The fault."""


@contextmanager
def profiling(profile: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Call `profile` for every call in this thread and in those that it starts."""
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def name_of(code: CodeType) -> str:
    """A function's module and name, as `core.session:Session.before`."""
    module = code.co_filename.removeprefix(HOME).removesuffix(".py").strip("/").replace("/", ".")
    return f"{module}:{code.co_qualname}"


@contextmanager
def calls_of(into: dict[str, CodeType]) -> Iterator[None]:
    """Record the functions of the package that are called."""

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            into.setdefault(name_of(code), code)

    with profiling(profile):
        yield


@contextmanager
def fault_in(code: CodeType, nth: int = 1) -> Iterator[list[str]]:
    """Make the n-th call of one function raise; yields a list that is filled when it has."""
    fired: list[str] = []
    count = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        if event == "call" and frame.f_code is code and not fired:
            count += 1
            if count == nth:
                fired.append(name_of(code))
                raise InjectedError("broken on purpose")

    with profiling(profile):
        yield fired
