"""Streams of a resilient model.

Contract: parts without anything to see are held back, so that an attempt that fails before the
first word is made again unseen. Once something was given out, the stream goes on or ends: it is
begun anew only where the settings say so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from typing import Any, cast

from langchain_core.messages import AIMessageChunk

from shearpin.adapters.boundary.answers import fault_of, fault_words, is_usable
from shearpin.adapters.boundary.attempts import Attempt, attempting
from shearpin.adapters.boundary.modelcalls import decider
from shearpin.adapters.langchain.plans import AnyRunnable, Prompt, generic
from shearpin.adapters.messages import MARK
from shearpin.boundary.modelcalls import Ask, Step

__all__ = ["arestreamed", "restreamed"]

_END = object()


class _Stream:
    """One call that streams: what was held back, given out and received."""

    def __init__(
        self,
        prompt: Prompt,
        model: AnyRunnable,
        config: Mapping[str, Any] | None,
        kwargs: dict[str, Any],
    ) -> None:
        self.prompt = prompt
        self.exchange = self.prompt.exchange
        self.model = model
        self.config = dict(config or {})
        self.kwargs = kwargs
        self.attempt: Attempt | None = None
        self.held: list[Any] = []
        self.whole: Any = None
        self.emitted = False

    def begin(self, step: Ask) -> Attempt:
        """A new attempt."""
        self.attempt = self.exchange.attempt()
        self.held, self.whole, self.emitted = [], None, False
        return self.attempt

    def target(self, step: Ask) -> tuple[AnyRunnable, dict[str, Any], dict[str, Any]]:
        """Whom to ask, with which configuration and arguments."""
        config = dict(self.config)
        self.config.pop("run_id", None)  # it is given to the first attempt
        if step.target == 0:
            return self.model, config, self.kwargs
        kwargs = generic(self.kwargs, self.prompt.plan.own)
        if self.kwargs.get("stop") is not None:
            kwargs["stop"] = self.kwargs["stop"]
        return self.prompt.plan.others[step.target - 1], config, kwargs

    def takes(self, chunk: Any) -> list[Any]:
        """One more part; what may be given out now."""
        try:
            return self._taken(chunk)
        except Exception as fault:  # ours: parts are given out as they come
            self.prompt.bounds.tally.fault("models.stream", fault)
            self.emitted = True
            return [chunk]

    def _taken(self, chunk: Any) -> list[Any]:
        self.whole = chunk if self.whole is None else self.whole + chunk
        if not self.emitted and not _is_seen(chunk):
            self.held.append(chunk)
            return []
        out = [*self.held, chunk] if not self.emitted else [chunk]
        if not self.emitted:
            record = self.exchange.call.record()
            if record is not None:
                told = {**out[0].response_metadata, MARK: record}
                out[0] = out[0].model_copy(update={"response_metadata": told})
        self.held, self.emitted = [], True
        return out

    def rescued(self, error: Exception) -> bool:
        """Whether the stream has to be made as it is, because we have failed ourselves.

        Raises what attempts have raised, or the consumer.
        """
        outcome = self.exchange.rescued(error)
        if outcome is not None and outcome.error is not None:
            raise outcome.error
        return outcome is None and not self.emitted

    def ended(self) -> Step:
        """An attempt has come to its end."""
        fault = None if self.whole is None else fault_of(self.whole)
        fault = fault if self.whole is not None else "empty"
        call = self.exchange.call
        if fault is not None and self.emitted:
            return call.was_read(fault, fault_words(fault))
        usable = fault is None or is_usable(self.whole, fault) if self.whole is not None else False
        said = "" if fault is None else fault_words(fault)
        return call.answered(fault, said, usable=usable)

    def failed(self, error: Exception) -> Step:
        """An attempt has failed; text that was held back has been seen by nobody."""
        self.exchange.emitted = self.emitted
        assert self.attempt is not None
        return self.exchange.failed(error, self.attempt)

    def last(self, step: Step) -> list[Any]:
        """What is still to be given out when all is over; raises where there is no answer."""
        outcome = self.exchange.outcome(step)
        if outcome.failure is None:
            if self.emitted or outcome.fault is None or self.whole is None:
                return self.held
            answer = self.prompt.taken(self.whole, outcome)
            return [
                AIMessageChunk(
                    content=answer.content, id=answer.id, response_metadata=answer.response_metadata
                )
            ]  # pyright: ignore[reportUnknownMemberType]
        text = outcome.text
        message = self.prompt.lost(outcome)
        content = str(message.content)  # pyright: ignore[reportUnknownMemberType]
        rest = content.removeprefix(text.rstrip()) if text.strip() else content
        return [AIMessageChunk(content=rest, response_metadata=message.response_metadata)]


def restreamed(
    prompt: Prompt,
    model: AnyRunnable,
    config: Mapping[str, Any] | None,
    kwargs: dict[str, Any],
) -> Iterator[Any]:
    """The parts of an answer, of the first attempt that gives one."""
    stream = _Stream(prompt, model, config, kwargs)
    try:
        yield from _parts(stream)
        return
    except Exception as error:
        plain = stream.rescued(error)
    if plain:
        yield from cast("Any", model).stream(prompt.shortening.whole, config, **kwargs)


async def arestreamed(
    prompt: Prompt,
    model: AnyRunnable,
    config: Mapping[str, Any] | None,
    kwargs: dict[str, Any],
) -> AsyncIterator[Any]:
    """`restreamed`, for asynchronous code."""
    stream = _Stream(prompt, model, config, kwargs)
    try:
        async for part in _aparts(stream):
            yield part
        return
    except Exception as error:
        plain = stream.rescued(error)
    if plain:
        async for part in cast("Any", model).astream(prompt.shortening.whole, config, **kwargs):
            yield part


def _parts(stream: _Stream) -> Iterator[Any]:
    exchange = stream.exchange
    step: Step = exchange.call.first()
    while isinstance(step, Ask):
        if step.wait_seconds:
            exchange.waits()
            exchange.bounds.sleep(step.wait_seconds)
        attempt = stream.begin(step)
        messages = stream.prompt.shortening.messages(step)
        target, own, arguments = stream.target(step)
        try:
            with closing(cast("Any", target).stream(messages, own, **arguments)) as parts:
                while True:
                    with attempting(attempt):
                        chunk = next(parts, _END)
                    if chunk is _END:
                        break
                    yield from stream.takes(chunk)
        except Exception as error:
            exchange.heard.append(error)
            step = stream.failed(error)
        else:
            step = stream.ended()
    yield from stream.last(step)


async def _aparts(stream: _Stream) -> AsyncIterator[Any]:
    exchange = stream.exchange
    decide = decider(exchange)
    step = await decide(exchange.call.first)
    while isinstance(step, Ask):
        if step.wait_seconds:
            exchange.waits()
            await exchange.bounds.asleep(step.wait_seconds)
        attempt = stream.begin(step)
        messages = await stream.prompt.shortening.amessages(step)
        target, own, arguments = stream.target(step)
        try:
            async with aclosing(cast("Any", target).astream(messages, own, **arguments)) as parts:
                while True:
                    with attempting(attempt):
                        chunk = await anext(parts, _END)
                    if chunk is _END:
                        break
                    for part in stream.takes(chunk):
                        yield part
        except Exception as error:
            exchange.heard.append(error)
            step = await decide(stream.failed, error)
        else:
            step = await decide(stream.ended)
    for part in stream.last(step):
        yield part


def _is_seen(chunk: Any) -> bool:
    """Whether there is anything to see in a part of an answer."""
    content: object = chunk.content
    if isinstance(content, list):
        seen = any(map(_shows, cast("list[object]", content)))
    else:
        seen = bool(content)
    return seen or bool(getattr(chunk, "tool_call_chunks", None))


def _shows(block: object) -> bool:
    if not isinstance(block, dict):
        return True
    held = cast("dict[str, object]", block)
    return held.get("type") not in ("text", "text_delta") or bool(held.get("text"))
