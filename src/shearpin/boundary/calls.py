"""One tool call as the boundary sees it, and what its host adds to it.

Contract: host-free. What is not declared about a tool is not known of it: a verb in its name says
nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from shearpin.boundary.results import ToolResult
from shearpin.boundary.settings import Effects, Fallback, ToolPolicy
from shearpin.boundary.steps import Perform
from shearpin.core.tools import ToolFacts

__all__ = ["CallInfo", "Hooks", "Recorded", "recorded"]

_RESUME_EXPIRY_SECONDS: Final = 86_400.0
_RESUME_CHARACTERS: Final = 16_384


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A tool call.

    Attributes:
        tool: name of the tool.
        args: of the call.
        call_id: the same where the same call is carried out again, after a resume or a crash; empty
            where nobody can tell.
        thread: id of the conversation, in which effects happen at most once.
        facts: what is declared of the tool; None where nothing is.
        record: name under which its records are kept; empty for the tool's.
        read: the arguments as the tool reads them, for its records; None where nobody can tell.
    """

    tool: str
    args: Mapping[str, object]
    call_id: str = ""
    thread: str = ""
    facts: ToolFacts | None = None
    record: str = ""
    read: Mapping[str, object] | None = None

    @property
    def recorded_args(self) -> Mapping[str, object]:
        """The arguments by which its records know it."""
        return self.args if self.read is None else self.read

    @property
    def recorded_as(self) -> str:
        """The name under which records are kept."""
        return self.record or self.tool

    @property
    def repeatable(self) -> bool:
        """Whether it is declared that the call may be made twice."""
        return self.facts is not None and bool(self.facts.read_only or self.facts.idempotent)

    @property
    def acts(self) -> bool:
        """Whether it is declared that the call changes something, and a second one more."""
        facts = self.facts
        if facts is None or facts.idempotent:
            return False
        return bool(facts.destructive) or facts.read_only is False


def _nothing(*_: object) -> None:
    return None


def _no(*_: object) -> bool:
    return False


def _yes(*_: object) -> bool:
    return True


def _same(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a host adds to a call. By default: nothing.

    Attributes:
        passes: whether an exception is none of the boundary's business, such as a stop of the run.
        foreign: whether an exception of an attempt is not the tool's, but comes from the host's own
            work around it; it leaves as it is.
        unrun: whether an exception says that the tool was not run at all, e.g. for its arguments.
        handled: what is behind an output that tells of an error which the host, or the tool, has
            turned into an answer by itself: the exception, a result that was counted already, or
            True where nothing is to be seen. None where the output is a good one.
        composite: whether the attempt just made has made other calls in turn: that the last of them
            certainly did nothing says little then.
        admit: asked for room for another attempt, with the seconds to wait before it; takes it.
        blocking: whether `admit` has no place on an event loop.
        perform: how to run another tool in this one's place; None: as a function.
        pack: an output as JSON values; raises TypeError where that cannot be done.
        unpack: the output again.
        waiting: told True before a wait and False after it, however it ends.
    """

    passes: Callable[[BaseException], bool] = _no
    foreign: Callable[[BaseException], bool] = _no
    unrun: Callable[[BaseException], bool] = _no
    handled: Callable[[object], BaseException | ToolResult | bool | None] = _nothing
    composite: Callable[[], bool] = _no
    admit: Callable[[float], bool] = _yes
    blocking: bool = False
    perform: Callable[[Fallback], Perform | None] = _nothing
    pack: Callable[[object], object] = _same
    unpack: Callable[[object], object] = _same
    waiting: Callable[[bool], object] = _nothing


@dataclass(frozen=True, slots=True)
class Recorded:
    """How the effect of a call is recorded.

    Attributes:
        thread: under which thread.
        policy: what makes two calls the same effect.
        most_characters: of a result that is kept as it is; of a longer one, a shortened text is.
    """

    thread: str
    policy: Effects
    most_characters: int | None = None


def recorded(call: CallInfo, policy: ToolPolicy) -> Recorded | None:
    """How a call's effect is recorded: as the policy says; else, where it is declared to change
    something, so that carrying out the very same call again finds it done."""
    if policy.effect is not None:
        return Recorded(call.thread, policy.effect)
    if call.acts and call.call_id:
        # A page of its own: other calls of the tool, with whatever arguments, are other effects.
        page = f"{call.thread}\n{call.call_id}"
        resumed = Effects(key=_nothing, expiry_seconds=_RESUME_EXPIRY_SECONDS)
        return Recorded(page, resumed, _RESUME_CHARACTERS)  # of every such call, so it is bounded
    return None
