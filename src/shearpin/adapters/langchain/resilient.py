"""`resilient_model`: a chat model whose failed calls are made again, elsewhere or shorter.

Contract: what comes back is of the same type and behaves the same where nothing fails, bound to
tools, asked for structured output, streaming and asynchronous. Each attempt is a call of its own
for callbacks and budgets. A stream that somebody has begun to read is not begun anew, unless the
settings say so: it raises, or ends with a sentence that says where it broke off.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig

from shearpin.adapters.boundary.modelcalls import Outcome, adrive, drive, finished, read_message
from shearpin.adapters.langchain.alternatives import Alternatives
from shearpin.adapters.langchain.plans import (
    AnyRunnable,
    Plan,
    Prompt,
    generic,
    messages_of,
    prompt_of,
)
from shearpin.adapters.langchain.restreaming import arestreamed, restreamed
from shearpin.boundary.boundary import Boundary
from shearpin.boundary.modelcalls import Ask
from shearpin.errors import ConfigError

__all__ = ["is_resilient", "joining", "resilient_model"]

M = TypeVar("M", bound=BaseChatModel)
logger = logging.getLogger("shearpin")
_COMMON = ("tool_choice", "include_raw")
_PLAN = "__shearpin_plan__"
"""Where a model keeps its plan, in its `__dict__`."""


def resilient_model(
    model: M,
    fallbacks: Sequence[BaseChatModel] = (),
    *,
    boundary: Boundary | None = None,
    on_failure: Literal["raise", "answer"] = "raise",
    language: Literal["en", "zh"] = "en",
) -> M:
    """A copy of a chat model whose failed calls are made again, elsewhere or shorter.

    For models in plain nodes and chains; in an agent made by `create_agent`, `ResilienceMiddleware`
    does the same.

    Args:
        model: any LangChain chat model.
        fallbacks: asked in order where it gives no usable answer. None given: `boundary.models`.
        boundary: how often and how. None: that of the guarded run, or the defaults.
        on_failure: what follows where no model gives a usable answer: `raise` (default) the model's
            own error, which a node's boundary, a retry policy or you can act on, or `answer` with a
            short, honest message.
        language: of that message, `en` or `zh`.

    Raises:
        ConfigError: it is not a chat model, or a fallback is none, or an option is wrong.

    Example:
        >>> from shearpin.boundary import Boundary, Retries
        >>> from shearpin.testing import ScriptedModel
        >>> down, up = ScriptedModel([TimeoutError("no answer")]), ScriptedModel(["Here I am."])
        >>> boundary = Boundary(retries=Retries(attempts=1))
        >>> resilient_model(down, [up], boundary=boundary).invoke("hello").content
        'Here I am.'
    """
    others = tuple(fallbacks) or (tuple(boundary.models) if boundary is not None else ())
    for one in (model, *others):
        if not isinstance(one, BaseChatModel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"resilient_model() takes chat models, not a {type(one).__name__}")
    if on_failure not in ("raise", "answer"):
        raise ConfigError(f"on_failure must be 'raise' or 'answer', not {on_failure!r}")
    base = type(model)
    if is_resilient(model):
        raise ConfigError("the model is resilient already; give its fallbacks where it is made so")
    plan = Plan(boundary, language, on_failure == "raise", cast("tuple[AnyRunnable, ...]", others))
    return _twin(model, base, plan)


def joining(
    model: BaseChatModel, others: Sequence[AnyRunnable], own: frozenset[str]
) -> BaseChatModel:
    """A copy of a model that is resilient in runs with a boundary, by that.

    Args:
        model: that a node of a guarded graph asks.
        others: the fallbacks, bound as the model is.
        own: arguments that are bound to the model, and are for it alone.
    """
    plan = Plan(None, "en", raises=True, others=tuple(others), own=own, joins=True)
    return _twin(model, type(model), plan)


def is_resilient(model: object) -> bool:
    """Whether a model is resilient already."""
    return _PLAN in getattr(model, "__dict__", ())


def _twin(model: Any, base: type[Any], plan: Plan) -> Any:
    twin = model.model_copy()
    twin.__dict__[_PLAN] = plan  # as cached properties are kept: no field, copied with the rest
    object.__setattr__(twin, "__class__", _resilient_class(base))
    return twin


def _plain(model: Any, base: type[Any]) -> tuple[Any, Plan]:
    """The model as it is without us, and its plan."""
    twin = model.model_copy()
    plan = twin.__dict__.pop(_PLAN)
    object.__setattr__(twin, "__class__", base)
    return twin, plan


@lru_cache(maxsize=128)
def _resilient_class(base: type[Any]) -> type[Any]:
    """A subclass whose calls go through the plan of the model; made once, because that is slow."""

    def generate(
        self: Any, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any
    ) -> LLMResult:
        model, plan = _plain(self, base)
        calls = _begun(plan, model, messages, args, kwargs)
        if calls is None:
            return model.generate(messages, *args, **kwargs)
        return _joined([call.run() for call in calls])

    async def agenerate(
        self: Any, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any
    ) -> LLMResult:
        model, plan = _plain(self, base)
        calls = _begun(plan, model, messages, args, kwargs)
        if calls is None:
            return await model.agenerate(messages, *args, **kwargs)
        return _joined([await call.arun() for call in calls])

    def stream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:
        model, plan = _plain(self, base)
        prompt = prompt_of(plan, model, lambda: messages_of(input), _callbacks(config), None)
        if prompt is None:
            return model.stream(input, config, **kwargs)
        return restreamed(prompt, model, config, kwargs)

    def astream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        model, plan = _plain(self, base)
        prompt = prompt_of(plan, model, lambda: messages_of(input), _callbacks(config), None)
        if prompt is None:
            return model.astream(input, config, **kwargs)
        return arestreamed(prompt, model, config, kwargs)

    def bind_tools(self: Any, tools: Any, **kwargs: Any) -> Any:
        model, plan = _plain(self, base)
        bound: Any = model.bind_tools(tools, **kwargs)
        others = _bound_alike(plan.others, "bind_tools", tools, kwargs)
        if getattr(bound, "bound", None) is not model:
            return Alternatives(_with(plan, others), bound)
        own = frozenset(cast("dict[str, Any]", bound.kwargs))
        twin = _twin(model, base, _with(plan, others, own))
        return bound.model_copy(update={"bound": twin})

    def with_structured_output(self: Any, schema: Any = None, **kwargs: Any) -> Any:
        model, plan = _plain(self, base)
        chain = model.with_structured_output(schema, **kwargs)
        others = _bound_alike(plan.others, "with_structured_output", schema, kwargs)
        return Alternatives(_with(plan, others), chain)

    made = (generate, agenerate, stream, astream, bind_tools, with_structured_output)
    body: dict[str, Any] = {
        **{method.__name__: method for method in made},
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    return cast("Any", type)(base.__name__, (base,), body)


def _with(plan: Plan, others: Sequence[AnyRunnable], own: frozenset[str] = frozenset()) -> Plan:
    return replace(plan, others=tuple(others), own=plan.own | own)


def _bound_alike(
    others: Sequence[AnyRunnable], method: str, what: Any, kwargs: dict[str, Any]
) -> list[AnyRunnable]:
    """The fallbacks, bound as the model is; one that does not take an option goes without it."""
    bound: list[AnyRunnable] = []
    for other in others:
        bind = getattr(other, method)
        try:
            bound.append(bind(what, **kwargs))
        except Exception:
            known = {name: kwargs[name] for name in _COMMON if name in kwargs}
            try:
                bound.append(bind(what, **known))
            except Exception as error:  # without this one there is less to fall back on
                logger.warning("shearpin: a fallback cannot stand in here: %r", error)
    return bound


def _begun(
    plan: Plan,
    model: Any,
    messages: list[list[BaseMessage]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[_Generation] | None:
    """The calls for some prompts; None where they are to be made as they are."""
    named = {**dict(zip(("stop", "callbacks"), args, strict=False)), **kwargs}
    calls: list[_Generation] = []
    for each in messages:
        given = list(each)
        prompt = prompt_of(plan, model, lambda given=given: given, named.get("callbacks"), _read)
        if prompt is None:
            return None
        calls.append(_Generation(prompt, model, given, dict(named)))
    return calls


class _Generation:
    """One prompt on its way through `generate`."""

    def __init__(
        self, prompt: Prompt, model: Any, messages: list[BaseMessage], kwargs: dict[str, Any]
    ) -> None:
        self.prompt = prompt
        self.messages = messages
        self.model = model
        self.kwargs = kwargs

    def run(self) -> LLMResult:
        """The result, of the first attempt that gives one."""
        given = dict(self.kwargs)

        def plain() -> LLMResult:
            return self.model.generate([self.messages], **given)

        outcome = drive(self.prompt.exchange, self._prepared, plain)
        return finished(self.prompt.bounds, outcome, lambda: self._result(outcome))

    async def arun(self) -> LLMResult:
        """`run`, for asynchronous code."""
        given = dict(self.kwargs)

        def plain() -> Any:
            return self.model.agenerate([self.messages], **given)

        outcome = await adrive(self.prompt.exchange, self._aprepared, plain)
        return finished(self.prompt.bounds, outcome, lambda: self._result(outcome))

    def _prepared(self, step: Ask) -> Callable[[], LLMResult]:
        messages, config, kwargs = self.prompt.shortening.messages(step), *self._options(step)
        if config is None:
            return lambda: self.model.generate([messages], **kwargs)
        other = self.prompt.plan.others[step.target - 1]
        return lambda: _result(other.invoke(messages, config, **kwargs))

    async def _aprepared(self, step: Ask) -> Callable[[], Awaitable[LLMResult]]:
        messages = await self.prompt.shortening.amessages(step)
        config, kwargs = self._options(step)
        if config is None:
            return lambda: self.model.agenerate([messages], **kwargs)
        other = self.prompt.plan.others[step.target - 1]

        async def ask() -> LLMResult:
            return _result(await other.ainvoke(messages, config, **kwargs))

        return ask

    def _options(self, step: Ask) -> tuple[RunnableConfig | None, dict[str, Any]]:
        """How the model itself is called, or with which configuration another one."""
        return (None, self._own()) if step.target == 0 else (self._config(), self._generic())

    def _result(self, outcome: Outcome[LLMResult]) -> LLMResult:
        answer = outcome.answer
        if answer is None:
            return _result(self.prompt.lost(outcome))
        message = _message(answer)
        changed = message if message is None else self.prompt.taken(message, outcome)
        if changed is message or changed is None:
            return answer
        first = cast("ChatGeneration", answer.generations[0][0])
        noted = first.model_copy(update={"message": changed})
        return answer.model_copy(update={"generations": [[noted]]})

    def _own(self) -> dict[str, Any]:
        """What the model itself is called with; a run's id is given to its first attempt."""
        kwargs = dict(self.kwargs)
        self.kwargs.pop("run_id", None)
        return kwargs

    def _config(self) -> RunnableConfig:
        names = ("callbacks", "tags", "metadata", "run_name")
        given = {name: self.kwargs.get(name) for name in names}
        return cast("RunnableConfig", {k: v for k, v in given.items() if v is not None})

    def _generic(self) -> dict[str, Any]:
        kwargs = generic(self.kwargs, self.prompt.plan.own)
        if self.kwargs.get("stop") is not None:
            kwargs["stop"] = self.kwargs["stop"]
        return kwargs


def _callbacks(config: Any) -> object:
    return config.get("callbacks") if config else None


def _message(result: LLMResult) -> BaseMessage | None:
    first: Any = result.generations[0][0] if result.generations and result.generations[0] else None
    return first.message if isinstance(first, ChatGeneration) else None


def _read(result: LLMResult) -> Any:
    return read_message(_message(result))


def _result(message: Any) -> LLMResult:
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def _joined(results: Sequence[LLMResult]) -> LLMResult:
    if len(results) == 1:
        return results[0]
    runs = [run for result in results for run in result.run or ()]
    output = results[0].llm_output if results else None
    return LLMResult(
        generations=[result.generations[0] for result in results],
        llm_output=output,
        run=runs or None,
    )
