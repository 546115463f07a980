"""From facts to observations: identity, novelty, rounds, and whether a fact was counted before."""

from __future__ import annotations

from collections import OrderedDict
from zlib import crc32

from shearpin.core import stored
from shearpin.core.canonical import digest_text
from shearpin.core.masking import mask
from shearpin.core.normal import LONGEST_NAME, call_key, result_key
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
from shearpin.core.standing import Standing
from shearpin.core.stored import flag, number, row, sequence, texts, whole
from shearpin.core.tools import ToolFacts, effect_of
from shearpin.events import ModelCalled, ModelReturned, NodeLeft, ToolCalled, ToolReturned

__all__ = ["Observer"]

_AGENTS = 12
_RECENT = 48
_DONE = 32
_BEGUN = 24
_THINKING = 16
_ROUND_CALLS = 3


class Observer:
    """Keeps what is needed to tell new from old, in bounded memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tools = settings.tools
        self._ignored = settings.ignored_arguments
        self._agents: OrderedDict[str, Standing] = OrderedDict()
        self._recent: OrderedDict[str, str] = OrderedDict()
        self._done: OrderedDict[int, None] = OrderedDict()
        self._keys: OrderedDict[str, str] = OrderedDict()
        self._begun: OrderedDict[tuple[str, str], list[int]] = OrderedDict()
        self._thinking: OrderedDict[int, float] = OrderedDict()
        self._thought = self._thought_until = 0.0
        self._paid = False
        self.step = 0

    # -- identity -----------------------------------------------------------------------------

    def key(self, fact: ToolCalled) -> str:
        """The identity of a call, kept until its result is in."""
        found = self._keys.get(fact.call)
        if found is None:
            if len(self._keys) >= 256:
                self._keys.popitem(last=False)
            found = self._keys[fact.call] = self._identity(fact)
        return found

    def _identity(self, fact: ToolCalled | ToolReturned) -> str:
        tool = fact.tool
        if fact.args_digest is not None:
            return digest_text(f"{tool}\0{fact.args_digest}")
        facts = self._tools.get(tool) if self._tools else None
        return call_key(tool, fact.args, facts, self._ignored)

    def start(self, fact: ToolCalled, key: str) -> StartSeen | None:
        """A call begins; None unless its round holds several calls, so that a copy is possible."""
        agent = self._agents.get(fact.agent)
        if agent is None or agent.asked < 2:
            return None
        mark = crc32(fact.call.encode())
        begun = self._begun.get((fact.agent, key))
        if begun is None:
            if len(self._begun) >= _BEGUN:
                self._begun.popitem(last=False)
            begun = self._begun[(fact.agent, key)] = [mark, 1]
        elif mark != begun[0]:
            begun[1] += 1
        copies = 1 if mark == begun[0] else begun[1]
        return StartSeen(fact.at, self.step, fact.agent, fact.tool, key, copies)

    def epoch(self, agent: str) -> int:
        """How often an agent has done new work that changed something."""
        found = self._agents.get(agent)
        return found.epoch if found is not None else 0

    def is_done(self, call: str) -> bool:
        """Whether a call with this id was counted already."""
        return crc32(call.encode()) in self._done

    def mark(self, name: str) -> bool:
        """Count a call or task once: True the first time its id comes, else False."""
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
        if len(self._thinking) >= _THINKING:
            self._thinking.popitem(last=False)
        self._thinking[crc32(fact.call.encode())] = fact.at

    # -- observations -------------------------------------------------------------------------

    def take_node(self, fact: NodeLeft) -> NodeSeen | None:
        """What a node amounts to: nothing, if it failed or wrote nothing that tells of progress."""
        paid, self._paid = self._paid, False
        if fact.delta is None or fact.status == "error":
            return None
        return NodeSeen(fact.at, self.step, fact.agent, fact.node, fact.delta, paid)

    def take_model(self, fact: ModelReturned) -> tuple[Seen, ...]:
        """What a model response amounts to: a message, if it asks for nothing, and a complete
        round.

        A round whose results never came is closed first.
        """
        began = self._thinking.pop(crc32(fact.call.encode()), None) if self._thinking else None
        if began is not None:
            # models that think side by side: the time is counted once
            self._thought += max(0.0, fact.at - max(began, self._thought_until))
            self._thought_until = max(self._thought_until, fact.at)
        if fact.status == "error":
            return ()
        self.step += 1
        self._paid = True
        agent = self._agent(fact.agent)
        open_round = agent.pending and agent.calls
        closed = self._close(fact, agent) if open_round else None
        agent.open(len(fact.requests))
        self._unbegin(fact.agent)
        usage = fact.usage
        spent = None if usage is None or usage.estimated else usage
        text = fact.text
        model = ModelSeen(
            fact.at, self.step, agent.round, fact.agent, text, len(fact.requests),
            None if spent is None else spent.input_tokens,
            None if spent is None else spent.output_tokens,
        )  # fmt: skip
        if fact.requests:
            return (model,) if closed is None else (closed, model)
        message = MessageSeen(
            fact.at, self.step, agent.round, fact.agent, fact.node, text, not text or text.isspace()
        )
        symbol = digest_text(f"{fact.node}\0{mask(text)}")
        idle_at = fact.at - self._thought
        whole = RoundSeen(
            fact.at, idle_at, self.step, fact.agent, symbol, (), (), False, 0, fact.node
        )
        return (model, message, whole) if closed is None else (closed, model, message, whole)

    def take_tool(self, fact: ToolReturned) -> tuple[ToolSeen, RoundSeen | None]:
        """What an answered call amounts to, and the round that it completes, if it does."""
        tool = fact.tool
        facts = self._tools.get(tool) if self._tools else None
        key = self._keys.pop(fact.call, None) or self._identity(fact)
        agent = self._agents.get(fact.agent) or self._agent(fact.agent)
        if agent.pending <= 0:
            agent.open(1)
        pending = agent.pending = agent.pending - 1
        seen = self._tool_seen(fact, key, facts or NO_FACTS, agent)
        waits = seen.effect == "wait" or seen.facts.polling is True
        if seen.outcome != "blocked":
            agent.ran = True
        if agent.asked == 1:
            symbol = key + seen.result_key
            refused = agent.refused = 0 if agent.ran else agent.refused + 1
            return seen, RoundSeen(
                seen.at,
                seen.idle_at,
                self.step,
                fact.agent,
                symbol,
                (key,),
                (tool,),
                waits,
                refused,
                fact.node,
            )
        # a sum, because the answers of a batch come in any order
        agent.symbols += int(digest_text(key + seen.result_key), 16)
        if len(agent.calls) < _ROUND_CALLS:
            agent.calls.append(key)
            agent.tools.append(tool[:LONGEST_NAME])
        agent.waits = agent.waits or waits
        return seen, None if pending > 0 else self._close(fact, agent)

    def _tool_seen(
        self, fact: ToolReturned, key: str, facts: ToolFacts, agent: Standing
    ) -> ToolSeen:
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
            known = (
                result_key(text) if fact.result_digest is None else digest_text(fact.result_digest)
            )
        recent[key] = known
        effect = effect_of(fact.tool, fact.args, facts)
        novel = last is None
        # programs say nothing when it has worked
        work = novel and effect == "write" and (outcome == "ok" or outcome == "empty")
        if work:
            agent.epoch += 1
        at = fact.at
        return ToolSeen(
            at, at - self._thought, self.step, agent.round, fact.agent, fact.tool, key, known,
            outcome, effect, novel, last != known, work, agent.epoch, facts, fact.args, text,
            fact.node,
        )  # fmt: skip

    def _close(self, fact: ModelReturned | ToolReturned, agent: Standing) -> RoundSeen:
        agent.pending = 0
        calls, tools = tuple(agent.calls), tuple(agent.tools)
        symbol = digest_text(str(agent.symbols))
        agent.clear()
        self._unbegin(fact.agent)
        agent.refused = 0 if agent.ran else agent.refused + 1
        return RoundSeen(
            fact.at,
            fact.at - self._thought,
            self.step,
            fact.agent,
            symbol,
            calls,
            tools,
            agent.waits,
            agent.refused,
            fact.node,
        )

    def _unbegin(self, name: str) -> None:
        """The round of an agent is over: what begins next is no copy of what was in it."""
        if self._begun:
            for begun in [begun for begun in self._begun if begun[0] == name]:
                del self._begun[begun]

    def _agent(self, name: str) -> Standing:
        agent = self._agents.get(name)
        if agent is None:
            if len(self._agents) >= _AGENTS:
                self._agents.popitem(last=False)
            agent = self._agents[name] = Standing()
        elif len(self._agents) > 1:
            self._agents.move_to_end(name)
        return agent

    def try_again(self, name: str) -> None:
        """An agent is shown another way: its refused rounds up to here do not count."""
        self._agent(name).refused = 0

    def new_turn(self) -> None:
        """Nothing is old in a new turn; what was counted stays counted."""
        self._recent.clear()
        self._agents.clear()
        self._keys.clear()
        self._begun.clear()
        self._paid = False

    # -- persistence --------------------------------------------------------------------------

    def shed(self) -> bool:
        """Forget the older half of what was seen; False if nothing is left to forget."""
        if len(self._recent) < 2 and len(self._agents) < 2:
            return False
        for memory in (self._recent, self._agents, self._begun, self._thinking):
            for _ in range(len(memory) // 2):
                memory.popitem(last=False)
        return True

    def dump(self) -> list[object]:
        """The state as JSON-ready data; keys of calls in flight are made anew."""
        return [
            self.step, float(self._thought), float(self._thought_until), self._paid,
            "".join(f"{mark:08x}" for mark in self._done),
            [[mark, float(at)] for mark, at in self._thinking.items()],
            [[*pair, *begun] for pair, begun in self._begun.items()],
            [[key, result] for key, result in self._recent.items()],
            [[name, agent.dump()] for name, agent in self._agents.items()],
        ]  # fmt: skip

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        step, thought, until, paid, done, thinking, begun, recent, agents = row(data, 9)
        self.step, self._thought, self._paid = whole(step), number(thought), flag(paid)
        self._thought_until = number(until)
        marks = stored.text(done)
        self._done = OrderedDict((int(marks[i : i + 8], 16), None) for i in range(0, len(marks), 8))
        for item in sequence(thinking):
            mark, at = row(item, 2)
            self._thinking[whole(mark)] = number(at)
        for item in sequence(begun):
            name, key, mark, copies = row(item, 4)
            self._begun[(stored.text(name), stored.text(key))] = [whole(mark), whole(copies)]
        for item in sequence(recent):
            key, result = texts(row(item, 2))
            self._recent[key] = result
        for item in sequence(agents):
            name, standing = row(item, 2)
            agent = self._agents[stored.text(name)] = Standing()
            agent.load(standing)
