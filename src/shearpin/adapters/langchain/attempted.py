"""A middleware's model request, as each attempt makes it: to whom, with what, and how long.

Contract: the request that came in stays as it is. For another model it is what LangChain's own
fallback middleware makes of it, so that one provider's settings do not reach another. Notes and
shortened histories are lent to the request; nothing of them is saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from shearpin.adapters.boundary.answers import asked_again
from shearpin.adapters.boundary.attempts import ATTEMPT
from shearpin.adapters.boundary.bounds import Bounds
from shearpin.adapters.boundary.shortening import share_of, trimmed
from shearpin.adapters.messages import unanswered
from shearpin.boundary.modelcalls import Ask

if TYPE_CHECKING:
    from collections.abc import Generator

    from shearpin.adapters.langchain.requests import AnyRequest

__all__ = ["Shortening", "request_for_fallback"]

_NO_ANSWER: Final = AIMessage("")


class _Captured(Exception):  # noqa: N818
    """Ends the first call of LangChain's fallback middleware, which is not to be made."""


def request_for_fallback(request: AnyRequest, model: BaseChatModel) -> AnyRequest:
    """The request as LangChain's own fallback middleware would hand it to another model."""
    asked: list[Any] = []

    def probe(given: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            raise _Captured
        return _NO_ANSWER

    ModelFallbackMiddleware(model).wrap_model_call(request, probe)
    return asked[-1]


class Shortening:
    """The messages of one call, shortened where that is asked for; each model begins with all.

    Args:
        messages: as they came.
        bounds: whose settings say how.
        why: what the provider said about the length, when it said so.

    Attributes:
        whole: what is sent where nothing has to change.
    """

    def __init__(
        self, messages: Sequence[BaseMessage], bounds: Bounds, why: Callable[[], str]
    ) -> None:
        self.whole = list(messages)
        self._bounds = bounds
        self._why = why
        self._target = 0
        self._kept = self.whole

    def messages(self, step: Ask) -> list[BaseMessage]:
        """What the attempt sends."""
        self._begin(step)
        if step.shorten:
            made = self._own()
            if made is not None and inspect.isawaitable(made):
                cast("Any", made).close()
                self._fault(TypeError("too_long is asynchronous, and this call is not"))
                made = None
            self._keep(made)
        return self._told(step)

    async def amessages(self, step: Ask) -> list[BaseMessage]:
        """`messages`, where what shortens them may be asynchronous."""
        self._begin(step)
        if step.shorten:
            made = self._own()
            if made is not None and inspect.isawaitable(made):
                try:
                    with _apart():
                        made = await cast("Awaitable[object]", made)
                except Exception as error:
                    self._fault(error)
                    made = None
            self._keep(made)
        return self._told(step)

    def _begin(self, step: Ask) -> None:
        if step.target != self._target:
            self._target, self._kept = step.target, self.whole

    def _own(self) -> object | None:
        """What the user's function makes of the messages; None where there is none, or it fails."""
        how = self._bounds.boundary.answers.too_long
        if not callable(how):
            return None
        try:
            with _apart():
                return how(list(self.whole))
        except Exception as error:
            self._fault(error)
            return None

    def _keep(self, made: object | None) -> None:
        if isinstance(made, (list, tuple)) and made:
            items = list(cast("Sequence[object]", made))
            if all(isinstance(item, BaseMessage) for item in items):
                self._kept = cast("list[BaseMessage]", items)
                return
        if made is not None:
            self._fault(TypeError("too_long must give back messages"))
        self._kept = trimmed(self._kept, share_of(self._why())) or self._kept

    def _told(self, step: Ask) -> list[BaseMessage]:
        note = None if step.fault is None else asked_again(step.fault, self._bounds.language)
        if note is None or unanswered(self._kept):
            return self._kept
        return [*self._kept, note]

    def _fault(self, error: BaseException) -> None:
        self._bounds.tally.fault("answers.too_long", error)


@contextmanager
def _apart() -> Generator[None]:
    """What is asked of a model in here is a call of its own, no attempt."""
    token = ATTEMPT.set(None)
    try:
        yield
    finally:
        ATTEMPT.reset(token)
