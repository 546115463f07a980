"""The session: the only mutable object of the core, one run's (or thread's) state.

`before(fact)` and `after(fact)` give a verdict for what is about to happen and for what did. `dump`
and `load` are exact inverses: bounded, JSON-ready, without any text of the run. Not thread-safe;
the caller holds a lock. A fault in a detector is contained here and written to the journal.
"""

from __future__ import annotations

from collections.abc import Iterable

from shearpin.core.acting import Acting
from shearpin.core.detectors.base import Probe
from shearpin.core.journal import NoteRecord
from shearpin.core.memory import DUMP_VERSION, Spend
from shearpin.core.modes import MODES
from shearpin.core.normal import LONGEST_NAME, short_name
from shearpin.core.seen import NodeSeen, RoundSeen, Seen, StartSeen, ToolSeen, VectorSeen
from shearpin.core.settings import Settings
from shearpin.core.tools import command_word
from shearpin.events import (
    Fact,
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    NodeLeft,
    SignalReceived,
    ThoughtEmbedded,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from shearpin.findings import Finding, Severity
from shearpin.verdicts import PROCEED, Block, Verdict

__all__ = ["DUMP_VERSION", "Session", "Spend"]

_OPEN_ROUNDS = 16


class Session(Acting):
    """One run's state, and what is made of it. See the module's contract.

    Example:
        >>> from shearpin.core.settings import Settings
        >>> Session(Settings()).state
        'closed'
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._tool_routes = self._routes[ToolSeen]
        self._round_routes = self._routes[RoundSeen]
        self._nodes_watched = bool(self._routes[NodeSeen])

    # -- facts --------------------------------------------------------------------------------

    def before(self, fact: Fact) -> Verdict:
        """The verdict on what is about to happen."""
        if self.stopped is not None:
            return self.stopped
        if type(fact) is ToolCalled:
            return self._before_tool(fact)
        if type(fact) is ModelCalled:
            if len(fact.agent) > LONGEST_NAME:
                fact = fact._replace(agent=short_name(fact.agent))
            self._observer.thinking(fact)
            tried = self._last if self._breaker.state == "half_open" else None
            own = tried is not None and tried.agent == fact.agent
            if tried is not None and own and not self._breaker.lease(fact.call, fact.at):
                return self._halt(tried, fact.at, fact.node, "trial_rounds")
        return PROCEED

    def after(self, fact: Fact) -> Verdict:
        """The verdict on what has happened. An id that was seen before changes nothing."""
        if type(fact) is ToolReturned:
            if self._observer.mark(fact.call):
                return self._after_tool(fact)
        elif type(fact) is ModelReturned:
            if self._observer.mark(fact.call):
                return self._after_model(fact)
        elif type(fact) is NodeLeft:
            if self._nodes_watched and self.stopped is None:
                return self._after_node(fact)
        elif isinstance(fact, ThoughtEmbedded):
            if self.stopped is None:
                seen = VectorSeen(fact.at, self.step, short_name(fact.agent), fact.vector)
                return self._observe(self._routes[VectorSeen], seen, PROCEED)
        elif isinstance(fact, TurnStarted):
            self._new_turn(fact.at)
        elif isinstance(fact, HistoryCompacted):
            self._forget(short_name(fact.agent), fact.at)
            self._compacted = self.step
        elif isinstance(fact, SignalReceived) and fact.name == "continue":
            self._continue(fact.at)
        return self.stopped or PROCEED

    # -- calls --------------------------------------------------------------------------------

    def _before_tool(self, fact: ToolCalled) -> Verdict:
        if len(fact.agent) > LONGEST_NAME:
            fact = fact._replace(agent=short_name(fact.agent))
        observer = self._observer
        key = observer.key(fact)
        finding = self._copy(fact, key)
        if finding is None and self._ladder.refusing:
            names = (key, f"tool:{fact.tool}", f"tool:{fact.tool} {command_word(fact.args)}")
            finding = self._ladder.refusal(names, fact.agent, observer.epoch(fact.agent), self.step)
            if finding is not None and finding.hard and not observer.is_done(fact.call):
                self._signal("refused", fact.at)
        if finding is None or observer.is_done(fact.call):
            return PROCEED
        if self._breaker.state == "open":
            return PROCEED  # only watching: the run would be over by now, and that was said
        if self._ladder.is_withheld(finding):
            text = self._without_words(finding)
        else:
            text = self._block_words(finding, self._texts.get(key))
        mode = self._modes.at(fact.tool, fact.node)
        return self._give(Block(finding, text), finding, text, fact.at, mode)

    def _copy(self, fact: ToolCalled, key: str) -> Finding | None:
        """The finding that this call is a copy of another one in the same response, if it is."""
        routes = self._routes[StartSeen]
        seen = self._observer.start(fact, key) if routes else None
        if seen is None:
            return None
        for family, probe in routes:
            try:
                finding = probe.observe(seen)
            except Exception as error:  # a faulty rule must not hurt the run
                self.fault(f"detector {family}", error, fact.at)
                continue
            if finding is not None and finding.level >= Severity.BLOCK:
                return finding
        return None

    # -- judging ------------------------------------------------------------------------------

    def _after_tool(self, fact: ToolReturned) -> Verdict:
        """Spend counts for every call that is new, also after a stop: it was made after all."""
        if fact.status != "blocked":
            self._tool_calls += 1
        if self.stopped is not None:
            return self.stopped
        if len(fact.agent) > LONGEST_NAME:
            fact = fact._replace(agent=short_name(fact.agent))
        seen, whole = self._observer.take_tool(fact)
        verdict = self._observe(self._tool_routes, seen, PROCEED)
        if self._breaker.state != "closed" and seen.fresh:
            self._progress(seen)
        return verdict if whole is None else self._round(whole, verdict)

    def _after_model(self, fact: ModelReturned) -> Verdict:
        self._model_calls += 1
        usage = fact.usage
        if usage is not None:
            self._input_tokens += usage.input_tokens
            self._output_tokens += usage.output_tokens
        if self.stopped is not None:
            return self.stopped
        if fact.status == "error":
            self._breaker.release(fact.call)
        if len(fact.agent) > LONGEST_NAME:
            fact = fact._replace(agent=short_name(fact.agent))
        if fact.model is not None and self._models.get(fact.agent) != fact.model:
            self._name_model(fact.agent, fact.model)
        verdict: Verdict = PROCEED
        for seen in self._observer.take_model(fact):
            if type(seen) is RoundSeen:
                verdict = self._round(seen, verdict)
            else:
                verdict = self._observe(self._routes[type(seen)], seen, verdict)
        return verdict

    def _after_node(self, fact: NodeLeft) -> Verdict:
        if len(fact.agent) > LONGEST_NAME:
            fact = fact._replace(agent=short_name(fact.agent))
        mark = "n:" + fact.task
        if self._observer.is_done(mark):
            return PROCEED
        seen = self._observer.take_node(fact)
        if seen is None or not self._observer.mark(mark):
            return PROCEED
        return self._observe(self._routes[NodeSeen], seen, PROCEED)

    def _round(self, whole: RoundSeen, verdict: Verdict) -> Verdict:
        verdict = self._observe(self._round_routes, whole, verdict)
        if whole.refused >= self.settings.limits.refused_rounds and self.stopped is None:
            return self._nothing_runs(whole) or verdict
        if self._breaker.state != "closed" or self._round_evidence:
            verdict = _stronger(verdict, self._settle(whole))
        return verdict

    def _nothing_runs(self, whole: RoundSeen) -> Verdict | None:
        """Round after round every call is refused: the agent will not take the hint."""
        names = (*whole.calls, *(f"tool:{tool}" for tool in whole.tools))
        finding = self._ladder.refusal(names, whole.agent, self._observer.epoch(whole.agent))
        finding = finding or self._last
        if finding is None:
            return None
        return self._halt(finding, whole.at, whole.node, "refused_rounds")

    def _observe(
        self, routes: Iterable[tuple[str, Probe]], seen: Seen, verdict: Verdict
    ) -> Verdict:
        """Show an observation to the probes of its kind; the strongest verdict counts."""
        for family, probe in routes:
            try:
                finding = probe.observe(seen)
            except Exception as error:  # a faulty rule must not hurt the run
                self.fault(f"detector {family}", error, seen.at)
                continue
            if finding is not None and finding.level is Severity.NONE:
                finding = self._remark(finding, seen.at)
            if finding is not None:
                verdict = _stronger(verdict, self._answer(finding, seen))
        return verdict

    def _answer(self, finding: Finding, seen: Seen) -> Verdict:
        """What to do about one finding: at most what its level, the mode and the ladder allow."""
        level = finding.level
        if isinstance(seen, NodeSeen) and self._last is not None and self._last.key != finding.key:
            return PROCEED  # the calls in these nodes have told of the loop already
        node = getattr(seen, "node", "")
        mode = self._mode_of(finding, node)
        if MODES.index(mode) < MODES.index(self.settings.mode):
            return self._aside(finding, seen, level, mode)
        if finding.hard:
            _note(self._round_evidence, finding.agent)
            self._breaker.unpivot()
            relapse = self._breaker.relapse(finding.key, self.step)
            if relapse == "late":
                self._ladder.pardon(finding.key)
            elif relapse == "soon" and level is Severity.NUDGE:
                level = Severity.BLOCK
        if level is Severity.BLOCK:
            self._ladder.refuse(finding, self._observer.epoch(finding.agent))
            if isinstance(seen, ToolSeen) and seen.outcome != "blocked":
                self._remember(seen)
        if finding.hard:
            self._last = finding  # the run may end over this loop: with its latest count
        told = self._ladder.told(finding)
        rung = self._ladder.climb(finding, level)
        if rung is Severity.NONE:
            return PROCEED
        if rung is Severity.STOP:
            return self._halt(finding, seen.at, node)
        return self._speak(finding, seen, told, rung, mode)

    def _remark(self, finding: Finding, at: float) -> Finding | None:
        """Journal a finding that justifies no verdict, once; what it amounts to with others."""
        if self._ladder.note(finding):
            self._journal.append(
                NoteRecord(
                    self.step, at, finding.family, finding.rule, finding.key, finding.agent,
                    finding.summary(),
                )
            )  # fmt: skip
        return self._notes.add(finding, self.step)

    # -- progress and recovery ----------------------------------------------------------------

    def _progress(self, seen: ToolSeen) -> None:
        """A call with a new result: part of a pivot, and an end to its refusal."""
        if seen.outcome not in ("ok", "empty"):
            return
        if seen.work:
            self._breaker.worked()
        _note(self._round_progress, seen.agent)
        self._ladder.allow(seen.call_key)
        acts = seen.effect not in ("think", "wait", "handoff")
        if seen.novel and seen.outcome == "ok" and acts and self._breaker.pivot(1):
            self._recover(seen.at)

    def _recover(self, at: float) -> None:
        if self._last is not None:
            self._breaker.recover(self._last.key, self.step)
        self._signal("pivoted", at)

    def _settle(self, whole: RoundSeen) -> Verdict:
        """A round is over: in HALF_OPEN a trial is used, after a nudge evidence adds up."""
        evidence = self._round_evidence.pop(whole.agent, False)
        progressed = self._round_progress.pop(whole.agent, False)
        if self.stopped is not None:
            return self.stopped
        last = self._last
        if last is None or not last.hard or not (evidence or whole.agent == last.agent):
            return PROCEED
        # the same call with the same error cannot end differently: such a round counts twice
        stuck = last.cause == "error_not_understood" and not last.evidence.get("all_new")
        weight = 2 if evidence and stuck else int(evidence)
        # an answer without a call uses no trial: it ends the loop, unless it is one itself
        idle = not whole.calls and not evidence
        by = "trial_rounds" if self._breaker.state == "half_open" else "persist_rounds"
        if self._breaker.settle(progressed or idle, weight) is None:
            return PROCEED
        return self._halt(last, whole.at, whole.node, by)

    # -- the turn -----------------------------------------------------------------------------

    def _new_turn(self, at: float) -> None:
        self._forget(None, at)
        self._observer.new_turn()
        self._ladder.clear()
        self._signal("turn_started", at)
        self.stopped = None
        self.worst = Severity.NONE
        self._last = None
        self._compacted = 0
        self._notes.clear()
        self._texts.clear()
        self._said.clear()
        self._round_evidence.clear()
        self._round_progress.clear()

    def _continue(self, at: float) -> None:
        """A person said: go on. The upper bound stays: HALF_OPEN, a few rounds, a few times."""
        if self.stopped is not None and self._signal("continued", at):
            self.stopped = None
            if self._last is not None:
                self._ladder.pardon(self._last.key)
                self._observer.try_again(self._last.agent)
                self._forget(self._last.agent, at)


def _note(flags: dict[str, bool], agent: str) -> None:
    """Remember something of an agent's open round; of very many agents the oldest is forgotten."""
    if agent not in flags and len(flags) >= _OPEN_ROUNDS:
        del flags[next(iter(flags))]
    flags[agent] = True


def _stronger(a: Verdict, b: Verdict) -> Verdict:
    return b if b.severity > a.severity else a
