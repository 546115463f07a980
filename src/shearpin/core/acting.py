"""How a session acts on what it has concluded: its words, its verdicts, and what the mode leaves.

Contract: every verdict goes through `_give` and into the journal, also where the mode keeps it from
being carried out. Nothing is said twice in the same words. A loop is given one other way out before
the run ends over it, where the guard has one, and so are at most two loops of a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shearpin.core.breaker import Signal
from shearpin.core.canonical import digest_text
from shearpin.core.journal import TransitionRecord, VerdictRecord
from shearpin.core.memory import Memory
from shearpin.core.messages import (
    block_text,
    firm_words,
    halt_text,
    nudge_text,
    rollback_text,
    without_text,
)
from shearpin.core.modes import Mode, Modes
from shearpin.core.phrasing import PLAIN, added_words
from shearpin.core.secrets import without_values
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.settings import Settings
from shearpin.findings import Evidence, Finding, Severity
from shearpin.verdicts import PROCEED, Block, Halt, Nudge, Reroute, Rollback, Verdict

__all__ = ["Acting"]

_MOST_SAID = 16
_TEXTS = 16
_LONGEST_MODEL = 120
_JUST_COMPACTED = 12
"""Rounds after a summary in which a loop may come from what the summary left out."""


class Acting(Memory):
    """The half of a session that speaks and acts. See the module's contract."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._modes = Modes(settings.mode, settings.modes)
        self._said: dict[str, None] = {}

    def _name_model(self, agent: str, model: str) -> None:
        """Remember which model an agent uses, for reports; of very many agents the oldest goes."""
        if agent not in self._models and len(self._models) >= _MOST_SAID:
            del self._models[next(iter(self._models))]
        self._models[agent] = model[:_LONGEST_MODEL]

    # -- words --------------------------------------------------------------------------------

    def _nudge_words(
        self, finding: Finding, seen: Seen, firm: bool, wording: str = PLAIN
    ) -> str | None:
        """What the agent is told; None where it was told exactly that before."""
        args, text = (seen.args, seen.text) if isinstance(seen, ToolSeen) else ("", "")
        language, own = self.settings.language, self.settings.messages
        message = nudge_text(finding, args, text, firm, language, own)
        if wording != PLAIN and self.settings.choices is not None:
            added = self.settings.choices.words.get(wording)
            message += added_words(wording, language) if added is None else " " + added
        if not self._new_words(finding.agent, message):
            message += "" if firm else firm_words(language, own)
            if firm or not self._new_words(finding.agent, message):
                return None
        return message

    def _new_words(self, agent: str, message: str) -> bool:
        key = digest_text(f"{agent}:{message}")
        if key in self._said:
            return False
        if len(self._said) >= _MOST_SAID:
            del self._said[next(iter(self._said))]
        self._said[key] = None
        return True

    def _block_words(self, finding: Finding, result: str | None) -> str:
        return block_text(finding, result, self.settings.language, self.settings.messages)

    def _without_words(self, finding: Finding) -> str:
        return without_text(finding, self.settings.language, self.settings.messages)

    def _remember(self, seen: ToolSeen) -> None:
        """Keep the result of a call that will be refused, for the answer; in memory only."""
        if len(self._texts) >= _TEXTS:
            self._texts.pop(next(iter(self._texts)))
        self._texts[seen.call_key] = without_values(seen.text[:800], seen.args)[:400]

    # -- choices ------------------------------------------------------------------------------

    def _choose(
        self, place: str, finding: Finding, options: Sequence[str], at: float
    ) -> tuple[str, Finding]:
        """One of several interventions, and the finding with why it was chosen.

        Without anybody who chooses, and where that fails, it is the first.
        """
        choices = self.settings.choices
        if choices is None or len(options) < 2:
            return options[0], finding
        try:
            name, why = choices.choose(place, finding, options, f"{self.step}:{finding.key}")
            if name not in options:
                raise ValueError(f"{name!r} is none of {', '.join(options)}")
        except Exception as error:  # a faulty choice must not hurt the run
            self.fault("choices", error, at)
            return options[0], finding
        evidence: Evidence = {**finding.evidence, "choice": name, "choice_why": why}
        return name, replace(finding, evidence=evidence)

    def _speak(
        self, finding: Finding, seen: Seen, firm: bool, level: Severity, mode: Mode
    ) -> Verdict:
        """Tell the agent of a loop, in the words, or with the refusal, that help most."""
        self._signal("warned", seen.at)
        choices, wording = self.settings.choices, PLAIN
        if choices is not None and level is Severity.NUDGE:
            options = [*choices.wordings]
            if choices.blocks and finding.hard and finding.refuses and mode == "enforce":
                options.append("block")
            wording, finding = self._choose("nudge", finding, options, seen.at)
            if wording == "block":
                self._ladder.refuse(finding, self._observer.epoch(finding.agent))
                if isinstance(seen, ToolSeen) and seen.outcome != "blocked":
                    self._remember(seen)
                firm, wording = True, PLAIN
        message = self._nudge_words(finding, seen, firm, wording)
        if message is None:
            return PROCEED
        return self._give(Nudge(finding, message), finding, message, seen.at, mode)

    # -- verdicts -----------------------------------------------------------------------------

    def _halt(self, finding: Finding, at: float, node: str = "", by: str = "") -> Verdict:
        """End the run over a loop, or give it another way out first.

        `by` is the setting of the breaker whose patience ran out, where it was not the rule's own.
        """
        if by:
            finding = replace(finding, evidence={**finding.evidence, "ended_by": by})
        mode = self._mode_of(finding, node)
        if self._breaker.state == "open" and mode != "enforce":
            return PROCEED  # only watching: the end was written down already
        other = self._way_out(finding, at) if mode == "enforce" else None
        if other is not None:
            self._divert(other, at)
            return self._give(other, other.finding, other.message, at, mode)
        self._signal("exhausted", at)
        message = halt_text(finding, self.settings.language, self.settings.messages)
        halt = Halt(f"loop:{finding.family}", message, finding)
        given = self._give(halt, finding, message, at, mode)
        if given is halt:
            self.stopped = halt
        return given

    def _way_out(self, finding: Finding, at: float) -> Reroute | Rollback | None:
        """What the guard does about a loop before it ends the run, where it does anything."""
        way = self.settings.on_loop
        choices = self.settings.choices
        if (way is None and choices is None) or not self._ladder.may_divert(finding.key):
            return None
        if choices is not None and choices.ways:
            nameless = finding.subject is None or finding.evidence.get("node") is not None
            others = [one for one in choices.ways if not (nameless and one == "without_tool")]
            options = list(dict.fromkeys([way or "end", *others, "end"]))
            way, finding = self._choose("way_out", finding, options, at)
        if way is None or way == "end":
            return None
        if way == "rollback":
            language, own = self.settings.language, self.settings.messages
            note = rollback_text(finding, language, own)
            return Rollback(finding, max(0, finding.onset_step - 1), note)
        if way == "without_tool":
            if finding.subject is None or finding.evidence.get("node") is not None:
                return None
            return Reroute(finding, f"without:{finding.subject}")
        return Reroute(finding, way)

    def _divert(self, verdict: Reroute | Rollback, at: float) -> None:
        """The loop gets a last try elsewhere: HALF_OPEN, with its trial rounds."""
        finding = verdict.finding
        self._ladder.divert(finding.key)
        self._signal("refused", at)
        self._breaker.grant()
        self._observer.try_again(finding.agent)
        until = self.step + self.settings.limits.withhold_rounds
        if isinstance(verdict, Reroute) and verdict.target.startswith("without:"):
            self._ladder.withhold(finding, until)
        elif isinstance(verdict, Reroute) and verdict.target.startswith("model:"):
            self._ladder.lend(finding, verdict.target.removeprefix("model:"), until)
        self._forget(finding.agent, at)

    def _mode_of(self, finding: Finding, node: str) -> Mode:
        about_node = finding.evidence.get("node") is not None
        return self._modes.at("" if about_node else finding.subject or "", node)

    def _give(
        self, verdict: Verdict, finding: Finding, message: str, at: float, mode: Mode | None = None
    ) -> Verdict:
        """Journal a verdict and return what the mode leaves of it."""
        mode = mode or self.settings.mode
        acts = mode == "enforce" or (mode == "warn" and verdict.severity <= Severity.NUDGE)
        if acts and verdict.severity > self.worst:
            self.worst = verdict.severity
        evidence = finding.summary()
        if self._compacted and self.step - self._compacted <= _JUST_COMPACTED:
            evidence["steps_since_compaction"] = self.step - self._compacted
        self._journal.append(
            VerdictRecord(
                self.step, at, type(verdict).__name__.lower(), verdict.severity.label,
                finding.family, finding.rule, finding.key, finding.agent, evidence,
                message, acts, self._models.get(finding.agent, ""), self._tokens,
            )
        )  # fmt: skip
        return verdict if acts else PROCEED

    def _aside(self, finding: Finding, seen: Seen, level: Severity, mode: Mode) -> Verdict:
        """A loop where less is done than elsewhere: it moves neither breaker nor refusals."""
        told = self._ladder.told(finding)
        rung = self._ladder.climb(finding, level)
        if rung is Severity.NONE:
            return PROCEED
        if rung is Severity.STOP and mode == "observe":
            message = halt_text(finding, self.settings.language, self.settings.messages)
            halt = Halt(f"loop:{finding.family}", message, finding)
            return self._give(halt, finding, message, seen.at, mode)
        words = self._nudge_words(finding, seen, told)
        if words is None:
            return PROCEED
        return self._give(Nudge(finding, words), finding, words, seen.at, mode)

    def rule(self, verdict: Nudge | Block | Halt, finding: Finding, at: float) -> Verdict:
        """Take in a verdict that was reached outside of the rules, such as over a budget.

        It is journaled, and what the mode leaves of it is returned; a halt stays until a new turn.
        """
        given = self._give(verdict, finding, verdict.message, at)
        if given is verdict and isinstance(verdict, Halt):
            self.stopped = verdict
        return given

    def pardon(self, reason: str) -> None:
        """Take back a halt whose reason begins so: what it was given for has been changed."""
        if self.stopped is not None and self.stopped.reason.startswith(reason):
            self.stopped = None

    def without(self, agent: str) -> frozenset[str]:
        """The tools that an agent has to do without for now."""
        return self._ladder.without(agent, self.step)

    def model_for(self, agent: str) -> str | None:
        """The name of the model that an agent has for now in place of its own; mostly None."""
        return self._ladder.lent(agent, self.step)

    def _signal(self, signal: Signal, at: float) -> bool:
        source = self._breaker.state
        if not self._breaker.signal(signal):
            return False
        target = self._breaker.state
        self._journal.append(TransitionRecord(self.step, at, source, target, signal, self._tokens))
        return True
