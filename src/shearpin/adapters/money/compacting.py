"""Histories that are summarised again and again and do not become shorter.

What a summary keeps word for word may itself be longer than what triggers the next summary; then
each step pays for a summary that brings nothing.

*Source*: bytedance/deer-flow#2622: the kept tail alone lay above the trigger for three turns.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Compactions"]

_IN_A_ROW = 2
_MOST = 64


class _Seen(NamedTuple):
    """A speaker's last prompt, and how often in a row a summary did not make it shorter."""

    tokens: float
    calls: int
    cuts: int
    futile: int


class Compactions:
    """Watches the prompts of a run's speakers, and when their histories were cut."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._cuts: dict[str, int] = {}
        self._seen: dict[str, _Seen] = {}
        self._told: set[str] = set()

    def happened(self, agent: str) -> None:
        """The history of an agent has become shorter in messages."""
        self._cuts[agent] = self._cuts.get(agent, 0) + 1

    def look(self, agent: str, speaker: str, tokens: float) -> str | None:
        """What is to be told of a speaker's next prompt, if anything.

        Args:
            agent: that the speaker belongs to, with others, such as the one that summarises.
            speaker: whose prompt it is.
            tokens: of the prompt, as measured.
        """
        calls = self._calls[agent] = self._calls.get(agent, 0) + 1
        cuts = self._cuts.get(agent, 0)
        last = self._seen.pop(speaker, None)
        futile = 0
        # One other call in between, and a history that was cut: that call was for a summary.
        summarised = last is not None and calls == last.calls + 2 and cuts > last.cuts
        if last is not None and summarised and tokens >= last.tokens:
            futile = last.futile + 1
        self._seen[speaker] = _Seen(tokens, calls, cuts, futile)
        while len(self._seen) > _MOST:
            del self._seen[next(iter(self._seen))]
        if futile < _IN_A_ROW or last is None or agent in self._told:
            return None
        self._told.add(agent)
        return (
            f"the history of {agent!r} was summarised {futile} times in a row and did not get "
            f"shorter (about {last.tokens:,.0f}, then {tokens:,.0f} tokens): what is kept of it is "
            "longer than what triggers the summary, and each step pays for another one; keep fewer "
            "messages, or let the summary be triggered later"
        )
