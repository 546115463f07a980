"""Room in the budget for what a boundary calls besides: further attempts, and tools as fallbacks.

Contract: each of them holds a tool call of its own before it is made, and is settled when the call
that it was made for is over. Where there is no room, or the wait would outlast the time that is
left, there is no further attempt. In a mode that does not act it is made, and charged.
"""

from __future__ import annotations

from shearpin.adapters.money.spending import Spending
from shearpin.adapters.places import Place
from shearpin.adapters.run import Run
from shearpin.core.books import Exhausted

__all__ = ["ToolRoom"]


class ToolRoom:
    """The room of one tool call. See the module's contract.

    Args:
        run: that the call belongs to.
        spending: its budget; None where there is none, and so room for everything.
        call: id of the call.
        place: where it is made.
    """

    def __init__(self, run: Run, spending: Spending | None, call: str, place: Place) -> None:
        self._run = run
        self._spending = spending
        self._call = call
        self._place = place
        self._opened: list[tuple[str, str]] = []

    def admit(self, tool: str, wait: float) -> bool:
        """Whether there is room for one more attempt after so many seconds; sets it aside."""
        if self._run.stopped is not None:
            return False
        left = None if self._spending is None else self._spending.seconds_left()
        if left is not None and wait >= left:
            return False
        return self.hold(tool)

    def hold(self, tool: str) -> bool:
        """Set one call of a tool aside; False where there is no room."""
        spending = self._spending
        if spending is None:
            return True
        held = f"{self._call}~{len(self._opened) + 1}"
        try:
            found = spending.purse.open_tool(held, tool, "", self._place.agent, self._run.step)
        except Exception as error:  # as for first attempts: closed, unless its option says open
            spending.on_fault("budget.hold", error)
            return not spending.fails_closed
        if isinstance(found, Exhausted):
            if spending.acts:
                return False
            spending.purse.force_tool(held)
        self._opened.append((held, tool))
        return True

    def waiting(self, begins: bool) -> None:
        """Time before another attempt is no working time, unless something else goes on."""
        if self._spending is None or len(self._run.answering) > 1:
            return
        purse = self._spending.purse
        for book in purse.account.own:
            (book.watch.wait if begins else book.watch.work)(purse.now())

    def settle(self, attempts: int) -> None:
        """The call is over, after so many attempts; with none it was not made, and costs nothing.

        The first attempt is settled by whoever has opened the call.
        """
        spending = self._spending
        if spending is None:
            return
        if attempts == 0:
            spending.drop_tool(self._call)
        opened, self._opened = self._opened, []
        for held, tool in opened:
            for nudge in spending.close_tool(held, tool, self._place, self._run.step):
                self._run.keep(nudge)
