"""Runnables that stand for each other: a model's chain, and the same chain of its fallbacks.

Contract: what comes back is what one of them gives, whole: a stream of it has one part. An output
that cannot be parsed is asked for again like any other answer of no use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from shearpin.adapters.boundary.modelcalls import Outcome, adrive, drive, finished, read_message
from shearpin.adapters.langchain.plans import AnyRunnable, Plan, Prompt, messages_of, prompt_of
from shearpin.boundary.modelcalls import Ask, Fault, UselessAnswer

__all__ = ["Alternatives"]


class Alternatives(Runnable[Any, Any]):
    """A runnable with fallbacks that takes a model's input.

    Args:
        plan: with the fallbacks.
        first: what is tried first.
    """

    def __init__(self, plan: Plan, first: AnyRunnable) -> None:
        self.plan = plan
        self.first = first
        self.name = first.get_name()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The output of the first of them that gives a usable one."""
        prompt = self._prompt(input, config)
        if prompt is None:
            return self.first.invoke(input, config, **kwargs)

        def prepare(step: Ask) -> Any:
            messages, target = prompt.shortening.messages(step), self._target(step)
            return lambda: target.invoke(messages, config, **kwargs)

        def plain() -> Any:
            return self.first.invoke(input, config, **kwargs)

        outcome = drive(prompt.exchange, prepare, plain)
        return finished(prompt.bounds, outcome, lambda: self._output(prompt, outcome))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """`invoke`, for asynchronous code."""
        prompt = self._prompt(input, config)
        if prompt is None:
            return await self.first.ainvoke(input, config, **kwargs)

        async def prepare(step: Ask) -> Any:
            messages, target = await prompt.shortening.amessages(step), self._target(step)
            return lambda: target.ainvoke(messages, config, **kwargs)

        def plain() -> Any:
            return self.first.ainvoke(input, config, **kwargs)

        outcome = await adrive(prompt.exchange, prepare, plain)
        return finished(prompt.bounds, outcome, lambda: self._output(prompt, outcome))

    def _target(self, step: Ask) -> AnyRunnable:
        return self.plan.others[step.target - 1] if step.target else self.first

    def _prompt(self, input: Any, config: RunnableConfig | None) -> Prompt | None:
        callbacks = (config or {}).get("callbacks")
        prompt = prompt_of(self.plan, self.first, lambda: messages_of(input), callbacks, _read)
        if prompt is not None:
            prompt.exchange.parses = True
        return prompt

    def _output(self, prompt: Prompt, outcome: Outcome[Any]) -> Any:
        answer = outcome.answer
        if isinstance(answer, BaseMessage):
            return prompt.taken(answer, outcome)
        if answer is not None:
            return answer
        failure = outcome.failure
        if failure is None:
            return answer  # the model has given nothing, again and again
        raise outcome.error or UselessAnswer(failure.message, failure.error_type)


def _read(output: object) -> tuple[Fault | None, bool]:
    if isinstance(output, BaseMessage):
        return read_message(output)
    if output is None:
        return "invalid", True
    if isinstance(output, Mapping):
        held = cast("Mapping[str, object]", output)
        if set(held) == {"raw", "parsed", "parsing_error"}:
            bad = held["parsing_error"] is not None or held["parsed"] is None
            return ("invalid", True) if bad else (None, True)
    return None, True
