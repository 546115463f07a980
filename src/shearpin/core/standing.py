"""Where one agent stands: its round, and what the open round has brought so far."""

from __future__ import annotations

from shearpin.core.stored import flag, row, texts, whole

__all__ = ["Standing"]


class Standing:
    """One agent's rounds, work and refusals; bounded, whatever a round holds."""

    __slots__ = (
        "asked", "calls", "epoch", "pending", "ran", "refused", "round", "symbols", "tools", "waits"
    )  # fmt: skip

    def __init__(self) -> None:
        self.round = 0
        self.pending = 0
        self.epoch = 0
        self.asked = 0
        self.symbols = 0
        self.ran = False
        self.refused = 0
        self.calls: list[str] = []
        self.tools: list[str] = []
        self.waits = False

    def open(self, requests: int) -> None:
        """A round begins, with so many calls to be answered."""
        self.round += 1
        self.asked = self.pending = requests
        self.waits = self.ran = False
        if self.calls:
            self.clear()

    def clear(self) -> None:
        """What the round brought is no longer needed."""
        self.symbols = 0
        self.calls.clear()
        self.tools.clear()

    def dump(self) -> list[object]:
        """The state as JSON-ready data."""
        return [
            self.round, self.epoch, self.asked, self.pending, self.symbols,
            list(self.calls), list(self.tools), self.waits, self.ran, self.refused,
        ]  # fmt: skip

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        round_, epoch, asked, pending, symbols, calls, tools, waits, ran, refused = row(data, 10)
        self.round, self.epoch, self.asked = whole(round_), whole(epoch), whole(asked)
        self.pending, self.symbols, self.refused = whole(pending), whole(symbols), whole(refused)
        self.calls, self.tools = texts(calls), texts(tools)
        self.waits, self.ran = flag(waits), flag(ran)
