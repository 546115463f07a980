"""`ResilienceMiddleware`: failed calls of models and tools in agents made by `create_agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from shearpin import ConfigError, guard
from shearpin.boundary import (
    Answers,
    Availability,
    Boundary,
    Classification,
    ErrorCategory,
    Retries,
)
from shearpin.core.tools import ToolFacts
from shearpin.langchain import GuardMiddleware, ResilienceMiddleware
from shearpin.stores import MemoryStore
from shearpin.testing import StrictProvider, asks_for
from tests.boundary.models_setup import (
    DONE,
    HELLO,
    PRICES,
    QUICK,
    THREAD,
    BreaksOff,
    TooManyRequestsError,
    UnauthorizedError,
    Waits,
    asks,
    assert_answered,
    down,
    last,
    look,
    mark,
    model,
)

WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    return Waits(monkeypatch)


@tool
def broken(what: str) -> str:
    """Never works."""
    raise ConnectionError("connection lost")


async def asked(agent: Any, how: str, given: Any = HELLO, config: Any = None) -> Any:
    return agent.invoke(given, config) if how == "invoke" else await agent.ainvoke(given, config)


def agent_of(brain: Any, tools: Any = (look, broken), *, more: Any = (), **options: Any) -> Any:
    middleware = ResilienceMiddleware(**{"retries": QUICK, **options})
    agent = create_agent(brain, list(tools), middleware=[middleware, *more])
    agent.__dict__["resilience"] = middleware
    return agent


def failures_of(agent: Any) -> Any:
    return agent.__dict__["resilience"].report().boundary


@WAYS
async def test_an_agent_in_which_nothing_fails_is_as_without_it(how: str) -> None:
    script = (asks(), DONE)
    plain = create_agent(model(*script), [look])
    watched = agent_of(model(*script))
    assert list(plain.nodes) == list(watched.nodes)
    outs = [await asked(agent, how) for agent in (plain, watched)]
    told = [[(m.type, m.content, m.response_metadata) for m in out["messages"]] for out in outs]
    assert told[0] == told[1]
    assert failures_of(watched).errors == 0


@WAYS
async def test_a_failed_call_is_made_again_and_counted(how: str) -> None:
    brain = model(TimeoutError("no answer"), asks(), TooManyRequestsError("slow down"), DONE)
    agent = agent_of(brain)
    out = await asked(agent, how)
    assert last(out).content == DONE
    assert_answered(out["messages"])
    assert brain.calls == 4
    told = failures_of(agent)
    assert (told.errors, told.retries, told.abnormal) == (2, 2, False)
    assert told.places[0].types == {"timeout": 1, "rate_limit": 1}
    assert mark(last(out))["failures"][0]["error_type"] == "rate_limit"


@WAYS
async def test_a_fallback_answers_and_the_primarys_error_is_kept(how: str) -> None:
    primary, second = down(UnauthorizedError("no"), model_name="a"), model(DONE, model_name="b")
    agent = agent_of(primary, models=[down(model_name="c"), second])
    out = await asked(agent, how)
    assert last(out).content == DONE
    told = mark(last(out))
    assert told["fallback"] is True
    assert told["model"].endswith("/b")
    assert told["failures"][0]["model"].endswith("/a")
    assert told["failures"][0]["error_type"] == "authentication"
    assert primary.calls == 1, "a refused key is not tried again"
    assert failures_of(agent).degraded == 1


@WAYS
async def test_where_no_model_answers_the_agent_ends_honestly(how: str) -> None:
    agent = agent_of(down(UnauthorizedError("key sk-abcdefghijklmnopqrstuvwx refused")))
    out = await asked(agent, how)
    words = str(last(out).content)
    assert "could not be finished" in words
    assert "sk-" not in words
    assert "Error" not in words
    assert mark(last(out))["reason"] == "failures:authentication"
    assert "sk-" not in str(mark(last(out)))
    assert failures_of(agent).categories == {"fatal": 1}


@WAYS
async def test_the_error_itself_is_raised_where_that_is_asked_for(how: str) -> None:
    agent = agent_of(down(UnauthorizedError("no")), on_failure="raise")
    with pytest.raises(UnauthorizedError):
        await asked(agent, how)


@WAYS
async def test_a_wait_that_was_asked_for_is_kept_and_a_longer_one_is_not_waited(
    how: str, waits: Waits
) -> None:
    class LimitedError(TooManyRequestsError):
        def __init__(self, seconds: int) -> None:
            super().__init__("slow down")
            self.response = type("R", (), {"headers": {"retry-after": str(seconds)}})()

    brain = model(LimitedError(7), DONE)
    assert last(await asked(agent_of(brain), how)).content == DONE
    assert waits.seconds == [7.0]
    brain, other = model(LimitedError(3000)), model(DONE)
    assert last(await asked(agent_of(brain, models=[other]), how)).content == DONE
    assert waits.seconds == [7.0], "nobody waits for fifty minutes"


@WAYS
async def test_failed_tools_are_answered_and_every_call_has_its_answer(how: str) -> None:
    calls = asks_for(("look", {"what": "a"}), ("broken", {"what": "b"}), ("look", {"what": "c"}))
    agent = agent_of(model(calls, DONE))
    out = await asked(agent, how)
    assert_answered(out["messages"])
    answers = [message for message in out["messages"] if isinstance(message, ToolMessage)]
    assert [answer.status for answer in answers] == ["success", "error", "success"]
    assert "broken failed" in str(answers[1].content)
    assert last(out).content == DONE


@WAYS
async def test_only_what_is_declared_harmless_is_run_again(how: str) -> None:
    runs: list[str] = []

    @tool
    def fetch(what: str) -> str:
        """Fetch."""
        runs.append("fetch")
        raise TimeoutError("no answer")

    @tool
    def charge(what: str) -> str:
        """Charge."""
        runs.append("charge")
        raise TimeoutError("no answer")

    calls = asks_for(("fetch", {"what": "a"}), ("charge", {"what": "b"}))
    facts = {"fetch": ToolFacts(read_only=True)}
    agent = agent_of(model(calls, DONE), [fetch, charge], facts=facts)
    out = await asked(agent, how)
    assert runs.count("fetch") == 3
    assert runs.count("charge") == 1
    assert "may or may not have happened" in str(out["messages"][-2].content)


async def test_tools_that_say_they_only_read_are_run_again() -> None:
    runs: list[str] = []

    @tool
    def fetch(what: str) -> str:
        """Fetch."""
        runs.append(what)
        raise TimeoutError("no answer")

    fetch.metadata = {"annotations": {"readOnlyHint": True}}
    agent_of(model(asks_for(("fetch", {"what": "a"})), DONE), [fetch]).invoke(HELLO)
    assert len(runs) == 3


@WAYS
@pytest.mark.parametrize(
    ("useless", "kind"),
    [
        (AIMessage(""), "empty_answer"),
        (AIMessage("   "), "empty_answer"),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), "content_filter"),
        (AIMessage("half a", response_metadata={"finish_reason": "length"}), "cut_off"),
        (
            AIMessage(
                "",
                invalid_tool_calls=[
                    {
                        "name": "look",
                        "args": '{"wh',
                        "id": "1",
                        "error": None,
                        "type": "invalid_tool_call",
                    }
                ],
            ),
            "bad_output",
        ),
    ],
)
async def test_an_answer_of_no_use_is_asked_for_again(
    how: str, useless: AIMessage, kind: str
) -> None:
    brain = model(useless, DONE)
    agent = agent_of(brain)
    out = await asked(agent, how)
    assert [message.content for message in out["messages"]] == ["hello", DONE]
    assert failures_of(agent).places[0].types == {kind: 1}
    assert isinstance(brain.requests[1][-1], HumanMessage), "it is told what was wrong"
    assert len(brain.requests[1]) == len(brain.requests[0]) + 1


@WAYS
async def test_useless_answers_are_asked_for_again_a_few_times_and_then_said_so(how: str) -> None:
    brain = model(AIMessage(""), repeat_last=True)
    out = await asked(agent_of(brain), how)
    assert brain.calls == 3
    assert "the answer was empty" in str(last(out).content)
    assert mark(last(out))["fault"] == "empty"


@WAYS
async def test_an_answer_that_is_cut_off_is_asked_for_once_more_and_then_marked(how: str) -> None:
    cut = AIMessage("a long story", response_metadata={"finish_reason": "length"})
    brain = model(cut, repeat_last=True)
    out = await asked(agent_of(brain), how)
    assert brain.calls == 2, "the same request would only be cut off again"
    assert str(last(out).content).startswith("a long story")
    assert "broke off here" in str(last(out).content)


@WAYS
async def test_calls_of_a_cut_off_answer_are_not_run(how: str) -> None:
    """Streamed arguments that were cut off can be readable all the same."""
    cut = asks().model_copy(update={"response_metadata": {"finish_reason": "length"}})
    brain = model(cut, repeat_last=True)
    out = await asked(agent_of(brain), how)
    assert not any(isinstance(message, ToolMessage) for message in out["messages"])
    assert_answered(out["messages"])
    assert not last(out).tool_calls


async def test_what_is_no_text_is_not_called_empty() -> None:
    picture = AIMessage([{"type": "image", "url": "http://127.0.0.1/a.png"}])
    brain = model(picture)
    assert last(agent_of(brain).invoke(HELLO)).content == picture.content


async def test_with_again_0_answers_are_taken_as_they_are() -> None:
    cut = AIMessage("half a", response_metadata={"finish_reason": "length"})
    out = agent_of(model(cut), answers=Answers(again=0)).invoke(HELLO)
    assert last(out).content == "half a"
    assert "shearpin" not in last(out).response_metadata


class TooLongError(Exception):
    """A request that is too long."""

    def __init__(self) -> None:
        super().__init__("maximum context length is 8000 tokens, your messages have 16000 tokens")


def too_long(error: BaseException) -> Classification | None:
    if not isinstance(error, TooLongError):
        return None
    return Classification(ErrorCategory.DEGRADABLE, "context_length", None, True, error, str(error))


def long_history(rounds: int = 12) -> list[Any]:
    messages: list[Any] = [HumanMessage("the question")]
    for number in range(rounds):
        ask = asks_for(("look", {"what": f"w{number}"}))
        messages += [ask, ToolMessage("x" * 400, tool_call_id=ask.tool_calls[0]["id"])]
    return messages


def needs_room(limit: int) -> Any:
    def script(messages: Any, number: int) -> Any:
        size = sum(len(str(message.content)) for message in messages)
        return TooLongError() if size > limit else DONE

    return StrictProvider(script)


@WAYS
async def test_a_request_that_is_too_long_is_trimmed_and_made_once_more(how: str) -> None:
    brain = needs_room(3000)
    agent = create_agent(
        brain,
        [look],
        system_prompt="You are kind.",
        middleware=[ResilienceMiddleware(retries=QUICK, rules=[too_long])],
    )
    out = await asked(agent, how, {"messages": long_history()})
    assert last(out).content == DONE
    sent = brain.requests[1]
    assert isinstance(sent[0], SystemMessage)
    assert sent[1].content == "the question"
    assert_answered(sent[2:])
    assert len(sent) < len(brain.requests[0])
    assert len(out["messages"]) == len(long_history()) + 1, "what is saved stays whole"
    assert mark(last(out))["shortened"] is True


@WAYS
async def test_one_result_that_is_too_long_loses_its_middle(how: str) -> None:
    ask = asks()
    answer = ToolMessage("b" * 9000 + "END", tool_call_id=ask.tool_calls[0]["id"])
    brain = needs_room(8000)
    agent = agent_of(brain, rules=[too_long])
    out = await asked(agent, how, {"messages": [HumanMessage("q"), ask, answer]})
    assert last(out).content == DONE
    sent = str(brain.requests[1][-1].content)
    assert "characters left out" in sent
    assert sent.endswith("END")


@WAYS
async def test_the_user_may_shorten_in_his_own_way(how: str) -> None:
    def summary(messages: Any) -> list[Any]:
        return [messages[0], HumanMessage("summary of the rest")]

    brain = needs_room(3000)
    out = await asked(
        agent_of(brain, answers=Answers(too_long=summary), rules=[too_long]),
        how,
        {"messages": long_history()},
    )
    assert last(out).content == DONE
    assert [m.content for m in brain.requests[1]] == ["the question", "summary of the rest"]


async def test_what_shortens_may_be_asynchronous_and_may_fail() -> None:
    async def summary(messages: Any) -> list[Any]:
        return [messages[0]]

    brain = needs_room(3000)
    agent = agent_of(brain, answers=Answers(too_long=summary), rules=[too_long])
    out = await agent.ainvoke({"messages": long_history()})
    assert len(brain.requests[1]) == 1
    assert last(out).content == DONE

    def fails(messages: Any) -> list[Any]:
        raise KeyError("mine")

    agent = agent_of(needs_room(3000), answers=Answers(too_long=fails), rules=[too_long])
    assert last(agent.invoke({"messages": long_history()})).content == DONE
    assert failures_of(agent).faults == ("answers.too_long: KeyError: 'mine'",)


@WAYS
async def test_a_request_that_stays_too_long_is_not_trimmed_for_ever(how: str) -> None:
    brain = down(TooLongError())
    out = await asked(agent_of(brain, rules=[too_long]), how, {"messages": long_history()})
    assert brain.calls == 2
    assert mark(last(out))["reason"] == "failures:context_length"


@WAYS
async def test_a_run_in_which_too_much_fails_ends_with_a_degraded_answer(how: str) -> None:
    def script(messages: Any, number: int) -> Any:
        if "too much failed" in str(messages[-1].content):
            return "What I have is this."
        return asks_for(("broken", {"what": str(number)}))

    from shearpin.testing import ScriptedModel

    brain = ScriptedModel(script)
    agent = agent_of(brain, error_budget=4)
    out = await asked(agent, how)
    assert_answered(out["messages"])
    assert last(out).content == "What I have is this."
    assert mark(last(out))["reason"] == "failures:error_budget"
    told = failures_of(agent)
    assert told.exhausted
    assert brain.calls == 5


@WAYS
async def test_the_degraded_answer_is_given_without_a_model_too(how: str) -> None:
    agent = agent_of(down(), error_budget=2, retries=Retries(attempts=9, base_seconds=0.0))
    out = await asked(agent, how)
    assert "too much failed" in str(last(out).content)
    agent = create_agent(
        model(asks_for(("broken", {"what": "a"}), ("broken", {"what": "b"})), TimeoutError("x")),
        [broken],
        middleware=[ResilienceMiddleware(retries=QUICK, error_budget=2)],
    )
    out = await asked(agent, how)
    assert "too much failed" in str(last(out).content)
    assert "broken 2" in str(last(out).content)


@WAYS
@pytest.mark.parametrize("place", ["memory:", "sqlite:///{}/up.db"])
async def test_a_model_that_is_down_is_not_asked(how: str, place: str, tmp_path: Path) -> None:
    primary, second = down(model_name="a"), model(DONE, repeat_last=True, model_name="b")
    settings = Availability(min_calls=2, open_seconds=1000)
    agent = agent_of(
        primary,
        models=[second],
        availability=settings,
        retries=Retries(attempts=1),
        store=place.format(tmp_path),
    )
    for _ in range(4):
        assert last(await asked(agent, how)).content == DONE
    assert primary.calls == 2
    assert failures_of(agent).refused == 1


async def test_where_availability_cannot_be_looked_up_models_are_asked() -> None:
    class Broken(MemoryStore):
        def get(self, key: str) -> Any:
            raise OSError("no store")

        def put(self, *_: Any, **__: Any) -> Any:
            raise OSError("no store")

    agent = agent_of(model(DONE), availability=Availability(), store=Broken())
    assert last(agent.invoke(HELLO)).content == DONE


@WAYS
async def test_stops_and_pauses_pass_through_untouched(how: str) -> None:
    """A person's approval, and the guard's stop, are no failures."""
    agent = create_agent(
        model(asks(), DONE),
        [look],
        middleware=[
            ResilienceMiddleware(retries=QUICK),
            HumanInTheLoopMiddleware(interrupt_on={"look": True}),
        ],
        checkpointer=InMemorySaver(),
    )
    out = await asked(agent, how, HELLO, THREAD)
    assert out["__interrupt__"]
    resume: Any = Command(resume={"decisions": [{"type": "approve"}]})
    out = await asked(agent, how, resume, THREAD)
    assert last(out).content == DONE


@PRICES
@WAYS
async def test_it_works_with_the_guard_and_every_attempt_is_held_against_the_budget(
    how: str,
) -> None:
    brain = model(TimeoutError("x"), AIMessage(""), asks(), DONE)
    resilience = ResilienceMiddleware(retries=QUICK)
    watch = GuardMiddleware(budget="10 calls")
    agent = create_agent(brain, [look], middleware=[watch, resilience])
    out = await asked(agent, how)
    assert last(out).content == DONE
    report = watch.report()
    assert report.boundary is not None
    assert report.boundary.errors == 2
    assert report.budget is not None
    assert report.steps == 2, "what failed or was of no use is no step"
    spent = report.budget.scopes[0].spent
    assert spent["model_calls"] == 4


@PRICES
@WAYS
async def test_a_budget_stops_attempts_as_well(how: str) -> None:
    brain = down()
    resilience = ResilienceMiddleware(retries=Retries(attempts=50, base_seconds=0.0))
    watch = GuardMiddleware(budget="3 calls")
    agent = create_agent(brain, [look], middleware=[watch, resilience])
    out = await asked(agent, how)
    assert brain.calls == 3
    assert mark(last(out))["reason"] == "budget:model_calls"


@WAYS
async def test_it_joins_a_guarded_graph(how: str) -> None:
    brain = model(TimeoutError("x"), asks_for(("broken", {"what": "a"})), DONE)
    agent = create_agent(brain, [broken], middleware=[ResilienceMiddleware(retries=QUICK)])
    app = guard(agent)
    out = await asked(app, how)
    assert last(out).content == DONE
    assert_answered(out["messages"])
    told = app.report().boundary
    assert told is not None
    assert told.errors == 2


@WAYS
async def test_a_guard_with_a_boundary_ends_a_run_in_which_too_much_fails(how: str) -> None:
    from shearpin.testing import ScriptedModel

    brain = ScriptedModel(lambda messages, number: asks_for(("broken", {"what": str(number)})))
    agent = create_agent(brain, [broken])
    app = guard(agent, boundary=Boundary(error_budget=4, retries=QUICK))
    out = await asked(app, how)
    assert_answered(out["messages"])
    assert "too much failed" in str(last(out).content)
    report = app.report()
    assert (report.outcome, report.reason) == ("stopped", "failures:error_budget")
    assert report.remedy is not None
    assert "error_budget" in report.remedy


@WAYS
async def test_it_stacks_with_langchains_own_middleware(how: str) -> None:
    runs: list[str] = []

    @tool
    def flaky(what: str) -> str:
        """Works the third time."""
        runs.append(what)
        if len(runs) < 3:
            raise ConnectionError("connection lost")
        return "at last"

    brain = model(UnauthorizedError("no"), repeat_last=True)
    second = model(asks_for(("flaky", {"what": "a"})), AIMessage(""), DONE)
    agent = agent_of(
        brain,
        [flaky],
        more=[
            SummarizationMiddleware(model("summary")),
            ModelFallbackMiddleware(second),
            ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False),
        ],
        facts={"flaky": ToolFacts(read_only=True)},
    )
    out = await asked(agent, how)
    assert last(out).content == DONE
    assert len(runs) == 3
    assert_answered(out["messages"])


async def test_structured_output_that_does_not_validate_is_asked_for_again() -> None:
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Sum(BaseModel):
        total: int

    brain = model(asks_for(("Sum", {"total": "many"})), asks_for(("Sum", {"total": 4})))
    agent = create_agent(
        brain,
        [],
        response_format=ToolStrategy(Sum, handle_errors=False),
        middleware=[ResilienceMiddleware(retries=QUICK)],
    )
    assert agent.invoke(HELLO)["structured_response"] == Sum(total=4)


def test_options_are_checked_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="no field 'retrys'"):
        ResilienceMiddleware(retrys=3)
    with pytest.raises(ConfigError, match="not both"):
        ResilienceMiddleware(Boundary(), error_budget=3)
    with pytest.raises(ConfigError, match="on_failure"):
        ResilienceMiddleware(on_failure="ignore")  # type: ignore[arg-type]


def test_streamed_text_is_not_silently_begun_anew() -> None:
    brain = BreaksOff(["one two three four", DONE])
    agent = agent_of(brain)
    parts = [str(chunk.content) for chunk, _ in agent.stream(HELLO, stream_mode="messages")]
    text = "".join(parts)
    assert text.startswith("one two")
    assert "broke off here" in text
    assert DONE not in text
    brain = BreaksOff(["one two three four", DONE])
    assert last(agent_of(brain).invoke(HELLO)).content == DONE, "nobody has read it"
    brain = BreaksOff(["one two three four", DONE])
    again = agent_of(brain, answers=Answers(restart_streams=True))
    text = "".join(str(c.content) for c, _ in again.stream(HELLO, stream_mode="messages"))
    assert text == "one two " + DONE


@WAYS
async def test_faults_of_ours_hurt_nobody(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we get wrong fails as it would have failed without us, or is taken as it is."""

    def fails(*_: object) -> Any:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("shearpin.adapters.boundary.exchanges.fault_of", fails)
    monkeypatch.setattr("shearpin.adapters.boundary.exchanges.tries_of", fails)
    agent = agent_of(model(DONE))
    assert last(await asked(agent, how)).content == DONE
    assert failures_of(agent).faults == ("models.answered: ZeroDivisionError: ours",)
    agent = agent_of(down(KeyError("mine")), on_failure="raise")
    with pytest.raises(KeyError, match="mine"):
        await asked(agent, how)
    assert failures_of(agent).faults == ("models.failed: ZeroDivisionError: ours",)


@WAYS
async def test_a_rule_of_the_users_that_fails_is_passed_over_and_reported(how: str) -> None:
    def rule(error: BaseException) -> None:
        raise ZeroDivisionError("the user's")

    agent = agent_of(model(TimeoutError("x"), DONE), rules=[rule])
    assert last(await asked(agent, how)).content == DONE
    assert "ZeroDivisionError" in failures_of(agent).faults[0]


async def test_the_kill_switch_turns_it_off() -> None:
    import shearpin

    agent = agent_of(model(TimeoutError("x"), DONE))
    shearpin.disable()
    try:
        with pytest.raises(TimeoutError):
            agent.invoke(HELLO)
    finally:
        shearpin.enable()
    assert last(agent.invoke(HELLO)).content == DONE


@WAYS
async def test_the_guards_middleware_has_the_boundary_of_its_guard(how: str) -> None:
    primary = model(TimeoutError("x"), asks_for(("broken", {"what": "a"})), UnauthorizedError("no"))
    boundary = Boundary(retries=QUICK, models=[model(DONE, model_name="b")])
    watch = GuardMiddleware(boundary=boundary)
    agent = create_agent(primary, [broken], middleware=[watch])
    out = await asked(agent, how)
    assert_answered(out["messages"])
    assert last(out).content == DONE
    told = watch.report().boundary
    assert told is not None
    assert told.categories == {"retryable": 2, "fatal": 1}
    brain = down()
    create_agent(
        brain, [], middleware=[GuardMiddleware(boundary=boundary), ResilienceMiddleware()]
    ).invoke(HELLO)
    assert brain.calls == 3, "only one of them tries again"
