"""What makes model calls again may fail itself, anywhere: no error of ours reaches anybody.

Every function of it that a call uses is broken in turn. What comes is the model's answer, as if we
were not there, or the error that the model itself has raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from shearpin.adapters.boundary.attempts import ATTEMPT
from shearpin.boundary import Answers, Availability, Boundary
from shearpin.boundary.modelcalls import UselessAnswer
from shearpin.langchain import ResilienceMiddleware, resilient_model
from tests.boundary.models_setup import DONE, HELLO, QUICK, last, model
from tests.hosts.injector import InjectedError, calls_of, fault_in

HOMES = (
    "adapters.boundary.answers:",
    "adapters.boundary.attempts:",
    "adapters.langchain.alternatives:",
    "adapters.langchain.attempted:",
    "adapters.langchain.boundedmodels:",
    "adapters.langchain.plans:",
    "adapters.langchain.resilience:",
    "adapters.langchain.resilient:",
    "adapters.langchain.restreaming:",
    "adapters.boundary.modelcalls:",
    "adapters.boundary.shortening:",
    "boundary.modelcalls:",
)
RESILIENT = "adapters.langchain.resilient:"
SHELLS = {
    # The caller calls these: there is nothing of ours above them.
    f"{RESILIENT}_resilient_class.<locals>.generate",
    f"{RESILIENT}_resilient_class.<locals>.agenerate",
    f"{RESILIENT}_resilient_class.<locals>.stream",
    f"{RESILIENT}_resilient_class.<locals>.astream",
    f"{RESILIENT}_resilient_class.<locals>.generate.<locals>.<listcomp>",
    f"{RESILIENT}_resilient_class.<locals>.agenerate.<locals>.<listcomp>",
    "adapters.langchain.resilience:ResilienceMiddleware.wrap_model_call",
    "adapters.langchain.resilience:ResilienceMiddleware.awrap_model_call",
    # They do nothing but call what contains, or the model.
    f"{RESILIENT}_begun",
    f"{RESILIENT}_Generation.run",
    f"{RESILIENT}_Generation.arun",
    f"{RESILIENT}_Generation._prepared.<locals>.<lambda>",
    f"{RESILIENT}_Generation._aprepared.<locals>.<lambda>",
    "adapters.langchain.boundedmodels:called",
    "adapters.langchain.boundedmodels:acalled",
    "adapters.langchain.boundedmodels:called.<locals>.prepare.<locals>.<lambda>",
    "adapters.langchain.boundedmodels:acalled.<locals>.prepare.<locals>.<lambda>",
    # These contain: a fault at their very entry is one of the interpreter.
    "adapters.langchain.boundedmodels:_begun",
    "adapters.langchain.plans:prompt_of",
    "adapters.langchain.resilience:ResilienceMiddleware._run_of_model",
    "adapters.langchain.restreaming:restreamed",
    "adapters.langchain.restreaming:arestreamed",
    "adapters.boundary.modelcalls:drive",
    "adapters.boundary.modelcalls:adrive",
    "adapters.boundary.modelcalls:finished",
    # Broken when it goes on after the model has answered, it does not come to its own `except`.
    "adapters.boundary.modelcalls:_adriven",
    # A copy, a look-up, assignments.
    f"{RESILIENT}_plain",
    f"{RESILIENT}_callbacks",
    f"{RESILIENT}_Generation.__init__",
    f"{RESILIENT}_joined",
    "adapters.langchain.restreaming:_Stream.__init__",
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    ATTEMPT.set(None)
    logging.disable(logging.NOTSET)


def brain() -> Any:
    return model(TimeoutError("mine"), AIMessage(""), DONE, DONE, DONE, DONE)


def boundary() -> Boundary:
    return Boundary(
        retries=QUICK, availability=Availability(min_calls=50), answers=Answers(again=1)
    )


def by_model(how: str) -> Callable[[], str]:
    twin = resilient_model(brain(), [model(DONE, DONE)], boundary=boundary())

    async def work() -> str:
        if how == "ainvoke":
            return (await twin.ainvoke("hi")).text
        return "".join([part.text async for part in twin.astream("hi")])

    return {
        "invoke": lambda: twin.invoke("hi").text,
        "stream": lambda: "".join(part.text for part in twin.stream("hi")),
    }.get(how, lambda: asyncio.run(work()))


def by_middleware(how: str) -> Callable[[], str]:
    middleware = ResilienceMiddleware(boundary(), on_failure="raise")
    agent = create_agent(brain(), [], middleware=[middleware])
    if how == "invoke":
        return lambda: str(last(agent.invoke(HELLO)).content)
    return lambda: str(last(asyncio.run(agent.ainvoke(HELLO))).content)


CASES = [
    *((by_model, how) for how in ("invoke", "ainvoke", "stream", "astream")),
    *((by_middleware, how) for how in ("invoke", "ainvoke")),
]


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(("work", "how"), CASES)
def test_any_function_may_fail(
    work: Callable[[str], Callable[[], str]], how: str, nth: int
) -> None:
    codes: dict[str, CodeType] = {}
    run = work(how)
    with calls_of(codes):
        assert run() == DONE
    broken = {
        name: code
        for name, code in codes.items()
        if name.startswith(HOMES) and "<genexpr>" not in name and name not in SHELLS
    }
    assert len(broken) > 20
    wrong: list[str] = []
    for name, code in broken.items():
        run = work(how)
        ATTEMPT.set(None)  # a generator that is broken when it goes on does not come to its end
        try:
            with fault_in(code, nth):
                found: object = run()
        except (TimeoutError, UselessAnswer):
            continue
        except InjectedError:
            wrong.append(name)
        else:
            if found not in (DONE, ""):
                wrong.append(f"{name}: {found!r}")
    assert not wrong
