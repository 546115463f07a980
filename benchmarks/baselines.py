"""What others do: simple rules, and a published guard, on recorded runs.

Each baseline is a function from a run to its verdicts. A rule of one threshold stops where it
fires: that is what such rules do in the products they come from. The replay is open loop for all
alike: a rule goes on after its stop, so that a loop which begins later can still be caught.

* `identical_call` - the same tool with the same arguments, so many times within ten steps
* `in_a_row` - the same, in a row
* `openhands_like` - the four patterns of OpenHands' stuck detector, written anew from a description
* `reference_rules` - R1, R2, R3: identical call and result three times without a novel call in
  between; the same masked error from three calls in a row; the same message three times without a
  novel call
* `longguard` - the package of that name, if it is installed, fed as its own LangGraph layer does
  (first call of a response, tokens by the length of the thought)
"""

from __future__ import annotations

import importlib.util
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from shearpin.analysis.quality import Fired
from shearpin.core.canonical import digest
from shearpin.core.masking import mask, mask_error, words_of
from shearpin.core.outcomes import outcome_of, result_text
from shearpin.core.tools import effect_of
from shearpin.findings import Severity
from shearpin.traces import TraceRun

Baseline = Callable[[TraceRun], list[Fired]]

ERRORS = ("error", "bad_args", "transient", "unknown_tool")


class Called(NamedTuple):
    step: int
    key: str
    result: str
    error: str | None
    thinks: bool


def called(run: TraceRun) -> Iterator[Called | tuple[int, str, str]]:
    """The run in order: its messages (step, node, masked text) and its answered calls."""
    for number, step in enumerate(run.steps, 1):
        yield number, step.node, mask(step.text.strip())
        for call in step.calls:
            text = result_text(call.result)
            outcome = outcome_of(text, call.status)
            args = call.args if isinstance(call.args, str) else dict(call.args)
            words = [args] if isinstance(args, str) else [str(value) for value in args.values()]
            yield Called(
                number,
                call.args_digest or digest([call.name, args]),
                call.result_digest or digest(mask(text)),
                mask_error(text, words_of(words)) if outcome in ERRORS else None,
                effect_of(call.name, args, None) == "think",
            )


def calls_only(run: TraceRun) -> Iterator[Called]:
    return (event for event in called(run) if isinstance(event, Called))


def stop(step: int, rule: str) -> Fired:
    return Fired(step, Severity.STOP, rule)


def identical_call(times: int) -> Baseline:
    def judge(run: TraceRun) -> list[Fired]:
        recent: deque[tuple[int, str]] = deque()
        fired: list[Fired] = []
        for call in calls_only(run):
            recent.append((call.step, call.key))
            while recent[0][0] <= call.step - 10:
                recent.popleft()
            if len({step for step, key in recent if key == call.key}) >= times:
                fired.append(stop(call.step, "identical_call"))
        return fired

    return judge


def in_a_row(times: int) -> Baseline:
    def judge(run: TraceRun) -> list[Fired]:
        last, count = "", 0
        fired: list[Fired] = []
        for call in calls_only(run):
            count = count + 1 if call.key == last else 1
            last = call.key
            if count >= times:
                fired.append(stop(call.step, "in_a_row"))
        return fired

    return judge


def openhands_like(run: TraceRun) -> list[Fired]:
    """Four equal pairs, three equal actions with errors, three equal messages, A B A B A B."""
    fired: list[Fired] = []
    calls: list[Called] = []
    texts: list[str] = []
    for event in called(run):
        if not isinstance(event, Called):
            step, _, text = event
            if not run.steps[step - 1].calls:
                texts.append(text)
                if len(texts) >= 3 and len(set(texts[-3:])) == 1:
                    fired.append(stop(step, "monologue"))
            continue
        texts.clear()
        calls.append(event)
        pairs = [(call.key, call.result) for call in calls[-6:]]
        if len(pairs) >= 4 and len(set(pairs[-4:])) == 1:
            fired.append(stop(event.step, "same_pair"))
        last = calls[-3:]
        failed = len(last) == 3 and all(call.error is not None for call in last)
        if failed and len({call.key for call in last}) == 1:
            fired.append(stop(event.step, "same_error"))
        if len(pairs) == 6 and pairs[0] != pairs[1] and pairs[:4] == pairs[2:]:
            fired.append(stop(event.step, "alternation"))
    return fired


def reference_rules(run: TraceRun) -> list[Fired]:
    """R1, R2 and R3."""
    fired: list[Fired] = []
    known: set[str] = set()
    pairs: Counter[tuple[str, str]] = Counter()
    messages: Counter[tuple[str, str]] = Counter()
    errors: list[str] = []
    for event in called(run):
        if not isinstance(event, Called):
            step, node, text = event
            if text:
                messages[node, text] += 1
                if messages[node, text] >= 3:
                    fired.append(stop(step, "R3"))
            continue
        if event.key not in known and not event.thinks:
            pairs.clear()
            messages.clear()
        known.add(event.key)
        pairs[event.key, event.result] += 1
        if pairs[event.key, event.result] >= 3:
            fired.append(stop(event.step, "R1"))
        if event.error is None:
            errors.clear()
        else:
            errors.append(event.error)
            if len(errors) >= 3 and len(set(errors[-3:])) == 1:
                fired.append(stop(event.step, "R2"))
    return fired


def longguard(caps: bool) -> Baseline:
    """The package at its defaults, with or without its own caps on steps and tokens."""
    from longguard import (  # pyright: ignore[reportMissingImports]
        AgentStep,
        CircuitBreaker,
        GuardConfig,
    )

    logging.getLogger("longguard").setLevel(logging.CRITICAL)
    levels = {"reflect": Severity.NUDGE, "kill": Severity.STOP}

    def judge(run: TraceRun) -> list[Fired]:
        most = 10**9
        config = GuardConfig() if caps else GuardConfig(max_steps=most, max_tokens_per_run=most)
        breaker = CircuitBreaker(config)
        fired: list[Fired] = []
        for number, step in enumerate(run.steps, 1):
            call = step.calls[0] if step.calls else None
            decision = breaker.check(
                AgentStep(
                    step_number=number,
                    thought=step.text or "(no thought)",
                    action=None if call is None else call.name,
                    action_input=None if call is None else call.args,
                    observation=None if call is None else result_text(call.result),
                    tokens_used=max(len(step.text) // 4, 1),
                )
            )
            if decision.action in levels:
                fired.append(Fired(number, levels[decision.action], decision.reason[:24]))
        return fired

    return judge


def baselines() -> dict[str, Baseline]:
    """All that can run here, by name."""
    found: dict[str, Baseline] = {
        "identical call 3 times": identical_call(3),
        "five in a row": in_a_row(5),
        "OpenHands-like": openhands_like,
        "R1 or R2 or R3": reference_rules,
    }
    if importlib.util.find_spec("longguard") is not None:
        found["longguard, its caps off"] = longguard(caps=False)
        found["longguard, defaults"] = longguard(caps=True)
    return found
