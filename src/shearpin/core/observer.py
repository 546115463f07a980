"""From facts to observations: identity, novelty, rounds, and whether a fact was counted before."""

from __future__ import annotations

from collections import OrderedDict
from zlib import crc32

from shearpin.core.canonical import digest_text
from shearpin.core.masking import mask
from shearpin.core.normal import call_key, result_key
from shearpin.core.outcomes import outcome_of, result_text
from shearpin.core.seen import NO_FACTS, MessageSeen, NodeSeen, RoundSeen, Seen, StartSeen, ToolSeen
from shearpin.core.settings import Settings
from shearpin.core.tools import effect_of
from shearpin.events import Fact, ModelCalled, ModelReturned, NodeLeft, ToolCalled, ToolReturned

__all__ = ["Observer"]

_AGENTS = 16
_RECENT = 48
_DONE = 32
_ROUND_CALLS = 4


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
        self.begun.clear()
        self.parts.clear()
        self.calls.clear()
        self.tools.clear()
        self.waits = False


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

    def counts(self, fact: Fact) -> bool:
        """Mark a returned call or a left node as done; False if it was so before."""
        if isinstance(fact, NodeLeft):
            name = "n:" + fact.task
        elif isinstance(fact, (ModelReturned, ToolReturned)):
            name = fact.call
        else:
            return False
        mark = crc32(name.encode())
        self._known = mark in self._done
        if self._known:
            return False
        if len(self._done) >= _DONE:
            self._done.popitem(last=False)
        self._done[mark] = None
        return True

    def thinking(self, fact: ModelCalled) -> None:
        """A model starts to think: that time is not waiting."""
        if len(self._thinking) >= 64:
            self._thinking.pop(next(iter(self._thinking)))
        self._thinking[fact.call] = fact.at

    # -- observations -------------------------------------------------------------------------

    def take(self, fact: Fact) -> tuple[Seen, ...]:
        """What a fact amounts to; nothing if it was counted before (see `counts`)."""
        if self._known:
            return ()
        if type(fact) is ToolReturned:
            return self._take_tool(fact)
        if type(fact) is ModelReturned:
            return self._take_model(fact)
        assert isinstance(fact, NodeLeft)
        paid, self._paid = self._paid, False
        if fact.delta is None or fact.status == "error":
            return ()
        return (NodeSeen(fact.at, self.step, fact.agent, fact.node, fact.delta, paid),)

    def _take_model(self, fact: ModelReturned) -> tuple[Seen, ...]:
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
        if fact.requests:
            return () if closed is None else (closed,)
        text = fact.text
        message = MessageSeen(
            fact.at, self.step, agent.round, fact.agent, fact.node, text, not text or text.isspace()
        )
        symbol = digest_text(f"{fact.node}\0{mask(text)}")
        whole = RoundSeen(fact.at, fact.at - self._thought, self.step, fact.agent, symbol, (), (), False)
        return (message, whole) if closed is None else (closed, message, whole)

    def _take_tool(self, fact: ToolReturned) -> tuple[Seen, ...]:
        facts = self._tools.get(fact.tool)
        key = self._keys.pop(fact.call, None) or fact.args_digest
        if key is None:
            key = call_key(fact.tool, fact.args, facts, self._ignored)
        agent = self._agent(fact.agent)
        if agent.pending <= 0:
            agent.open(1)
        agent.pending -= 1
        seen = self._tool_seen(fact, key, agent)
        if len(agent.parts) < 64:
            agent.parts.append(key + seen.result_key)
        if len(agent.calls) < _ROUND_CALLS:
            agent.calls.append(key)
            agent.tools.append(fact.tool)
        agent.waits = agent.waits or seen.effect == "wait" or bool(seen.facts.polling)
        if agent.pending > 0:
            return (seen,)
        return (seen, self._close(fact.agent, agent, fact.at))

    def _tool_seen(self, fact: ToolReturned, key: str, agent: _Agent) -> ToolSeen:
        facts = self._tools.get(fact.tool) or NO_FACTS
        text = result_text(fact.result)
        outcome = outcome_of(text, fact.status)
        recent = self._recent
        last = recent.get(key)
        if outcome == "blocked":
            result = last or ""
        else:
            result = fact.result_digest or result_key(text)
        if last is None:
            if len(recent) >= _RECENT:
                recent.popitem(last=False)
        else:
            recent.move_to_end(key)
        recent[key] = result
        effect = effect_of(fact.tool, fact.args, facts)
        novel = last is None
        work = novel and outcome == "ok" and effect == "write"
        if work:
            agent.epoch += 1
        return ToolSeen(
            fact.at, fact.at - self._thought, self.step, agent.round, fact.agent, fact.tool, key, result,
            outcome, effect, novel, last != result, work, agent.epoch, facts, fact.args, text,
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

    _known = False

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
