"""The author's own say about each verdict: `Guard(on_verdict=...)`.

Contract: the handler is told of every verdict that is about to be carried out, once, outside of all
locks. What it raises is written down, and the verdict stands. It may give another verdict to be
carried out instead; a coroutine function is only told, since its answer would come too late.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from shearpin.recipe import Occasion
from shearpin.verdicts import Block, Halt, Nudge, Proceed, Verdict

if TYPE_CHECKING:
    from shearpin.recipe import Guard

__all__ = ["Teller"]

Note = Callable[[str, BaseException], None]

_WHERE = "on_verdict"
_KINDS = (Proceed, Nudge, Block, Halt)
_RUNNING: set[asyncio.Task[None]] = set()


class Teller:
    """Tells one handler."""

    def __init__(self, recipe: Guard) -> None:
        self._handler = cast("Callable[[Verdict, Occasion], object]", recipe.on_verdict)
        call = getattr(self._handler, "__call__", None)  # noqa: B004
        self._waits = inspect.iscoroutinefunction(self._handler) or (
            inspect.iscoroutinefunction(call)
        )

    def tell(self, verdict: Verdict, occasion: Occasion, note: Note) -> Verdict | None:
        """Tell of a verdict; the one to carry out instead, if the handler gave any."""
        try:
            found = self._handler(verdict, occasion)
            if inspect.isawaitable(found):
                self._later(cast("Coroutine[Any, Any, object]", found), note)
                return None
            if found is None or isinstance(found, _KINDS):
                return found
            raise TypeError(
                "on_verdict must return None, PROCEED, a Nudge, a Block or a Halt, "
                f"not {type(found).__name__}"
            )
        except Exception as error:
            note(_WHERE, error)
            return None

    def _later(self, told: Coroutine[Any, Any, object], note: Note) -> None:
        async def tells() -> None:
            try:
                await told
            except Exception as error:
                note(_WHERE, error)

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(tells())
            return
        task = loop.create_task(tells())
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
