"""From facts to observations: identity, novelty, rounds, and whether a fact was counted before."""

from __future__ import annotations

from collections import OrderedDict
from zlib import crc32

from shearpin.core.canonical import digest_text
from shearpin.core.masking import mask
from shearpin.core.normal import call_key, result_key
from shearpin.core.outcomes import outcome_of, result_text
from shearpin.core.seen import (
    NO_FACTS,
    MessageSeen,
    ModelSeen,
    NodeSeen,
    RoundSeen,
    Seen,
    StartSeen,
    ToolSeen,
)
from shearpin.core.settings import Settings
from shearpin.core.tools import ToolFacts, effect_of
from shearpin.events import ModelCalled, ModelReturned, NodeLeft, ToolCalled, ToolReturned

__all__ = ["Observer"]

_AGENTS = 16
_RECENT = 48
_DONE = 32
_ROUND_CALLS = 4
_ROUND_PARTS = 16


class _Agent:
    """Where one agent stands: its round, and what the open round has brought so far."""

    __slots__ = ("asked", "begun", "calls", "epoch", "parts", "pending", "round", "tools", "waits")

    def __init__(self) -> None:
        self.round = 0
        self.pending = 0
        self.epoch = 0
        self.asked = 0
        self.begun: dict[str, list[str]] = {}
        self.parts: list[str] = []
        self.calls: list[str] = []
        self.tools: list[str] = []
        self.waits = False

    def open(self, requests: int) -> None:
        self.round += 1
        self.asked = self.pending = requests
        self.waits = False
        if self.begun:
            self.begun.clear()
        if self.parts:
            self.parts.clear()
            self.calls.clear()
            self.tools.clear()


class Observer:
    """Keeps what is needed to tell new from old, in bounded memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tools = settings.tools
        self._ignored = settings.ignored_arguments
        self._agents: OrderedDict[str, _Agent] = OrderedDict()
        self._recent: OrderedDict[str, str] = OrderedDict()
        self._done: OrderedDict[int, None] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()
        self._thinking: dict[str, float] = {}
        self._thought = 0.0
        self._paid = False
        self.step = 0

    # -- identity -----------------------------------------------------------------------------

    def key(self, fact: ToolCalled) -> str:
        """The identity of a call, kept until its result is in."""
        found = self._keys.get(fact.call)
        if found is None:
            if len(self._keys) >= 256:
                self._keys.popitem(last=False)
            found = self._keys[fact.call] = fact.args_digest or call_key(
                fact.tool, fact.args, self._tools.get(fact.tool), self._ignored
            )
        return found

    def start(self, fact: ToolCalled, key: str) -> StartSeen | None:
        """A call begins; None unless its round holds several calls, so that a copy is possible."""
        agent = self._agents.get(fact.agent)
        if agent is None or agent.asked < 2:
            return None
        begun = agent.begun.setdefault(key, [])
        if fact.call not in begun:
            begun.append(fact.call)
        return StartSeen(fact.at, self.step, fact.agent, fact.tool, key, begun.index(fact.call) + 1)

    def epoch(self, agent: str) -> int:
        """How often an agent has done new work that changed something."""
        found = self._agents.get(agent)
        return found.epoch if found is not None else 0

    def is_done(self, call: str) -> bool:
        """Whether a call with this id was counted already."""
        return crc32(call.encode()) in self._done

    def mark(self, name: str) -> bool:
        """Count a call or task once: True the first time its id comes, False when it comes again."""
        mark = crc32(name.encode())
        done = self._done
        if mark in done:
            return False
        if len(done) >= _DONE:
            done.popitem(last=False)
        done[mark] = None
        return True

    def thinking(self, fact: ModelCalled) -> None:
        """A model starts to think: that time is not waiting."""
        if len(self._thinking) >= 64:
            self._thinking.pop(next(iter(self._thinking)))
        self._thinking[fact.call] = fact.at

    # -- observations -------------------------------------------------------------------------

    def take_node(self, fact: NodeLeft) -> NodeSeen | None:
        """What a node amounts to: nothing, if it failed or wrote nothing that tells of progress."""
        paid, self._paid = self._paid, False
        if fact.delta is None or fact.status == "error":
            return None
        return NodeSeen(fact.at, self.step, fact.agent, fact.node, fact.delta, paid)

    def take_model(self, fact: ModelReturned) -> tuple[Seen, ...]:
        """What a model response amounts to: a message, if it asks for nothing, and a complete round.

        A round whose results never came is closed first.
        """
        began = self._thinking.pop(fact.call, None)
        if began is not None:
            self._thought += fact.at - began
        if fact.status == "error":
            return ()
        self.step += 1
        self._paid = True
        agent = self._agent(fact.agent)
        closed = self._close(fact.agent, agent, fact.at) if agent.pending and agent.parts else None
        agent.open(len(fact.requests))
        usage = fact.usage
        known = usage is not None and not usage.estimated
        text = fact.text
        model = ModelSeen(
            fact.at, self.step, agent.round, fact.agent, text, len(fact.requests),
            usage.input_tokens if known else None, usage.output_tokens if known else None,
        )  # fmt: skip
        if fact.requests:
            return (model,) if closed is None else (closed, model)
        message = MessageSeen(
            fact.at, self.step, agent.round, fact.agent, fact.node, text, not text or text.isspace()
        )
        symbol = digest_text(f"{fact.node}\0{mask(text)}")
        whole = RoundSeen(fact.at, fact.at - self._thought, self.step, fact.agent, symbol, (), (), False)
        return (model, message, whole) if closed is None else (closed, model, message, whole)

    def take_tool(self, fact: ToolReturned) -> tuple[ToolSeen, RoundSeen | None]:
        """What an answered call amounts to, and the round that it completes, if it does."""
        tool = fact.tool
        facts = self._tools.get(tool) if self._tools else None
        key = self._keys.pop(fact.call, None) or fact.args_digest
        if key is None:
            key = call_key(tool, fact.args, facts, self._ignored)
        agent = self._agents.get(fact.agent) or self._agent(fact.agent)
        if agent.pending <= 0:
            agent.open(1)
        pending = agent.pending = agent.pending - 1
        seen = self._tool_seen(fact, key, facts or NO_FACTS, agent)
        waits = seen.effect == "wait" or seen.facts.polling is True
        if agent.asked == 1:
            symbol = key + seen.result_key
            return seen, RoundSeen(
                seen.at, seen.idle_at, self.step, fact.agent, symbol, (key,), (tool,), waits
            )
        if len(agent.parts) < _ROUND_PARTS:
            agent.parts.append(key + seen.result_key)
        if len(agent.calls) < _ROUND_CALLS:
            agent.calls.append(key)
            agent.tools.append(tool)
        agent.waits = agent.waits or waits
        return seen, None if pending > 0 else self._close(fact.agent, agent, fact.at)

    def _tool_seen(self, fact: ToolReturned, key: str, facts: ToolFacts, agent: _Agent) -> ToolSeen:
        result = fact.result
        text = result if type(result) is str else result_text(result)
        outcome = outcome_of(text, fact.status)
        recent = self._recent
        last = recent.get(key)
        if last is None:
            if len(recent) >= _RECENT:
                recent.popitem(last=False)
        else:
            recent.move_to_end(key)
        if outcome == "blocked":
            known = last or ""
        else:
            known = fact.result_digest or result_key(text)
        recent[key] = known
        effect = effect_of(fact.tool, fact.args, facts)
        novel = last is None
        work = novel and effect == "write" and outcome == "ok"
        if work:
            agent.epoch += 1
        at = fact.at
        return ToolSeen(
            at, at - self._thought, self.step, agent.round, fact.agent, fact.tool, key, known,
            outcome, effect, novel, last != known, work, agent.epoch, facts, fact.args, text,
        )  # fmt: skip

    def _close(self, name: str, agent: _Agent, at: float) -> RoundSeen:
        parts = agent.parts
        symbol = parts[0] if len(parts) == 1 else digest_text("".join(sorted(set(parts))))
        agent.pending = 0
        return RoundSeen(
            at, at - self._thought, self.step, name, symbol, tuple(agent.calls), tuple(agent.tools), agent.waits
        )

    def _agent(self, name: str) -> _Agent:
        agent = self._agents.get(name)
        if agent is None:
            if len(self._agents) >= _AGENTS:
                self._agents.popitem(last=False)
            agent = self._agents[name] = _Agent()
        elif len(self._agents) > 1:
            self._agents.move_to_end(name)
        return agent

    def new_turn(self) -> None:
        """Nothing is old in a new turn; what was counted stays counted."""
        self._recent.clear()
        self._agents.clear()
        self._keys.clear()
        self._paid = False

    # -- persistence --------------------------------------------------------------------------

    def dump(self) -> list[object]:
        """The state as JSON-ready data; an open round is kept, calls in flight are not."""
        return [
            self.step, int(self._thought), self._paid, list(self._done), list(self._recent.items()),
            [[name, a.round, a.pending, a.epoch, a.parts, a.calls, a.tools, a.waits]
             for name, a in self._agents.items()],
        ]  # fmt: skip

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        assert isinstance(data, list)
        self.step, thought, self._paid, done, recent, agents = data  # pyright: ignore[reportUnknownVariableType]
        self._thought = float(thought)  # pyright: ignore[reportUnknownArgumentType]
        self._done = OrderedDict((mark, None) for mark in done)  # pyright: ignore[reportUnknownVariableType]
        self._recent = OrderedDict((key, result) for key, result in recent)  # pyright: ignore[reportUnknownVariableType]
        self._agents.clear()
        for name, round_, pending, epoch, parts, calls, tools, waits in agents:  # pyright: ignore[reportUnknownVariableType]
            agent = self._agents[name] = _Agent()
            agent.round, agent.pending, agent.epoch, agent.waits = round_, pending, epoch, waits
            agent.parts, agent.calls, agent.tools = list(parts), list(calls), list(tools)  # pyright: ignore[reportUnknownArgumentType]
