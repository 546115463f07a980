"""What is decided about a model call, what counts as of no use, and how requests get shorter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import InvalidToolCall
from langchain_core.messages.utils import count_tokens_approximately

from shearpin import ConfigError, Guard
from shearpin.adapters.boundary.answers import as_answer, asked_again, fault_of, is_usable
from shearpin.adapters.boundary.exchanges import tries_of
from shearpin.adapters.boundary.shortening import share_of, trimmed
from shearpin.boundary import Answers, Boundary, Classification, ErrorCategory, Retries
from shearpin.boundary.modelcalls import Ask, Fault, Lost, ModelCall, Take
from shearpin.boundary.tally import RunErrors
from shearpin.testing import ManualClock, asks_for
from shearpin.testing.provider import complaints
from tests.boundary.models_setup import assert_answered


def failure(
    kind: str = "timeout",
    category: ErrorCategory = ErrorCategory.RETRYABLE,
    retry_after: float | None = None,
) -> Classification:
    return Classification(category, kind, retry_after, False, ValueError(kind), kind)


def call_of(
    names: tuple[str, ...] = ("a", "b"),
    *,
    retries: Retries | None = None,
    answers: Answers | None = None,
    tally: RunErrors | None = None,
    clock: ManualClock | None = None,
) -> ModelCall:
    return ModelCall(
        names,
        retries or Retries(base_seconds=1.0),
        answers or Answers(),
        tally or RunErrors(),
        clock or ManualClock(),
        lambda low, high: high,
    )


# -- decisions ------------------------------------------------------------------------------------


def test_waits_double_up_to_the_cap() -> None:
    call = call_of(retries=Retries(attempts=9, base_seconds=1.0, cap_seconds=5.0))
    call.first()
    steps = [call.failed(failure()) for _ in range(5)]
    assert [step.wait_seconds for step in steps if isinstance(step, Ask)] == [1, 2, 4, 5, 5]


def test_attempts_are_bounded_for_each_model_and_the_fallback_is_asked_at_once() -> None:
    call = call_of(retries=Retries(attempts=2, base_seconds=1.0))
    assert call.first() == Ask(0)
    assert call.failed(failure()) == Ask(0, 1.0)
    assert call.failed(failure()) == Ask(1)
    assert call.failed(failure()) == Ask(1, 1.0)
    lost = call.failed(failure("overloaded"))
    assert isinstance(lost, Lost)
    assert lost.failure.error_type == "timeout", "the model's own first error"
    told = call.record()
    assert told is not None
    assert told["attempts"] == 4


def test_no_attempt_begins_after_the_deadline() -> None:
    clock = ManualClock()
    call = call_of(
        ("a",), retries=Retries(attempts=9, base_seconds=1.0, deadline_seconds=10.0), clock=clock
    )
    call.first()
    assert isinstance(call.failed(failure()), Ask)
    clock.advance(9.5)
    assert isinstance(call.failed(failure()), Lost)


def test_there_is_no_wait_beyond_what_the_budget_has_left() -> None:
    call = call_of(("a",))
    call.first()
    assert isinstance(call.failed(failure(retry_after=20.0), longest=5.0), Lost)


def test_tries_of_the_client_count() -> None:
    call = call_of(("a",), retries=Retries(attempts=4, base_seconds=0.0))
    call.first()
    assert isinstance(call.failed(failure(), tries=3), Ask)
    assert isinstance(call.failed(failure(), tries=3), Lost)


def test_a_programming_error_is_not_taken_elsewhere_and_a_refused_key_is() -> None:
    call = call_of()
    call.first()
    assert isinstance(call.failed(failure("programming", ErrorCategory.FATAL)), Lost)
    call = call_of()
    call.first()
    assert call.failed(failure("authentication", ErrorCategory.FATAL)) == Ask(1)


def test_where_too_much_has_failed_nothing_is_tried_again_but_elsewhere() -> None:
    call = call_of(tally=RunErrors(error_budget=1))
    call.first()
    assert call.failed(failure()) == Ask(1)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["timeout", "quota", "context_length", "bad_output", "programming"]),
            st.sampled_from([None, "empty", "cut_off", "filtered", "refused", "unreadable"]),
        ),
        max_size=60,
    ),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 10),
)
def test_every_call_ends(events: list[Any], attempts: int, again: int, per_run: int) -> None:
    """Whatever comes, there are no more attempts than the settings allow."""
    retries = Retries(attempts=attempts, base_seconds=0.0)
    tally = RunErrors(None, per_run)
    call = call_of(("a", "b"), retries=retries, answers=Answers(again=again), tally=tally)
    step: Any = call.first()
    made = 0
    kinds = {"quota": ErrorCategory.DEGRADABLE, "context_length": ErrorCategory.DEGRADABLE}
    for event in [*events, None]:
        if not isinstance(step, Ask):
            break
        made += 1
        if event in ("timeout", "quota", "context_length", "bad_output"):
            step = call.failed(failure(event, kinds.get(event, ErrorCategory.RETRYABLE)))
        elif event == "programming":
            step = call.failed(failure(event, ErrorCategory.FATAL))
        else:
            step = call.answered(event, str(event))
    assert made <= 2 + per_run, "each of two models once, and the retries of the run"
    assert isinstance(step, (Take, Lost, Ask))
    if isinstance(step, Ask):
        assert made == len(events) + 1


# -- answers --------------------------------------------------------------------------------------

CALL = asks_for(("look", {"what": "a"}))
BAD_CALL = InvalidToolCall(name="look", args="{", id="1", error=None, type="invalid_tool_call")


def said(content: Any = "", reason: str | None = None, key: str = "finish_reason") -> AIMessage:
    return AIMessage(content, response_metadata={} if reason is None else {key: reason})


INCOMPLETE = AIMessage(
    "", response_metadata={"incomplete_details": {"reason": "max_output_tokens"}}
)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (said("an answer", "stop"), None),
        (said("an answer"), None),
        (CALL, None),
        (said(), "empty"),
        (said([]), "empty"),
        (said([{"type": "text", "text": " "}]), "empty"),
        (said([{"type": "thinking", "thinking": "hm"}]), "empty"),
        (said([{"type": "server_tool_use", "name": "web"}]), None),
        (said([{"type": "image", "url": "x"}]), None),
        (said("an", "length"), "cut_off"),
        (said("an", "max_tokens", "stop_reason"), "cut_off"),
        (said("an", "MAX_TOKENS"), "cut_off"),
        (said("an", "FinishReason.MAX_TOKENS"), "cut_off"),
        (said("an", "model_context_window_exceeded", "stop_reason"), "cut_off"),
        (INCOMPLETE, "cut_off"),
        (said("", "content_filter"), "filtered"),
        (said("", "SAFETY"), "filtered"),
        (said("", "guardrail_intervened", "stopReason"), "filtered"),
        (said("", "refusal", "stop_reason"), "refused"),
        (AIMessage("", additional_kwargs={"refusal": "I will not."}), "refused"),
        (said("", "MALFORMED_FUNCTION_CALL"), "unreadable"),
        (AIMessage("", invalid_tool_calls=[BAD_CALL]), "unreadable"),
        (AIMessage("", tool_calls=CALL.tool_calls, invalid_tool_calls=[BAD_CALL]), "unreadable"),
        (AIMessage("", additional_kwargs={"audio": {"id": "1"}}), None),
        (AIMessage("", response_metadata={"finish_reason": 7}), "empty"),
        (HumanMessage(""), None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_answer(message: BaseMessage, fault: Fault | None) -> None:
    assert fault_of(message) == fault


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (said(), "empty"),
        (said("an", "length"), "cut_off"),
        (CALL.model_copy(update={"response_metadata": {"finish_reason": "length"}}), "cut_off"),
        (AIMessage("text", invalid_tool_calls=[BAD_CALL]), "unreadable"),
        (AIMessage("", additional_kwargs={"refusal": "I will not."}), "refused"),
        (said("", "content_filter"), "filtered"),
    ],
)
def test_a_run_may_end_with_what_is_made_of_an_answer(
    message: AIMessage, fault: Fault, language: Any
) -> None:
    made = as_answer(message, fault, language)
    assert made.text.strip()
    assert not made.tool_calls
    assert not made.invalid_tool_calls
    assert fault_of(made.model_copy(update={"response_metadata": {}})) in (None, "refused")
    assert not list(complaints([HumanMessage("q"), made, HumanMessage("and?")]))
    note = asked_again(fault, language)
    assert fault == "refused" or (note is not None and note.content)


def test_text_that_asks_for_nothing_is_better_than_no_answer() -> None:
    assert is_usable(said("half a", "length"), "cut_off")
    assert not is_usable(said("", "length"), "cut_off")
    assert not is_usable(CALL, "cut_off")


# -- shorter requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "low", "high"),
    [
        ("maximum context length is 128000 tokens, your messages resulted in 140000", 0.7, 0.8),
        ("prompt is too long: 208310 tokens > 200000 maximum", 0.8, 0.85),
        ("too long", 0.5, 0.5),
        ("limit 8000, limit 8000", 0.5, 0.5),
        ("4096 tokens, you sent 4096000000", 0.05, 0.05),
    ],
)
def test_how_much_may_stay_is_read_from_the_error(words: str, low: float, high: float) -> None:
    assert low <= share_of(words) <= high


def history(sizes: list[int], questions: int, system: bool) -> list[BaseMessage]:
    messages: list[BaseMessage] = [SystemMessage("Be kind.")] if system else []
    for turn in range(questions):
        messages.append(HumanMessage(f"question {turn}"))
        for size in sizes:
            ask = asks_for(("look", {"what": "a"}), ("look", {"what": "b"}))
            messages.append(ask)
            messages += [
                ToolMessage("x" * size, tool_call_id=str(call["id"])) for call in ask.tool_calls
            ]
        if turn < questions - 1:
            messages.append(AIMessage("an answer"))
    return messages


@given(
    st.lists(st.integers(1, 6000), min_size=1, max_size=6),
    st.integers(1, 3),
    st.booleans(),
    st.floats(0.05, 0.85),
)
def test_what_is_trimmed_is_shorter_and_valid(
    sizes: list[int], questions: int, system: bool, share: float
) -> None:
    whole = history(sizes, questions, system)
    short = trimmed(whole, share)
    if short is None:
        return
    assert count_tokens_approximately(short) < count_tokens_approximately(whole)
    assert not list(complaints(short))
    assert_answered(short)
    assert isinstance(short[0], SystemMessage) is system
    assert any(message.content == f"question {questions - 1}" for message in short)
    assert short[-1].type == whole[-1].type


def test_a_question_alone_that_is_too_long_loses_its_middle() -> None:
    short = trimmed([HumanMessage("begin " + "x" * 50_000 + " end")], 0.5)
    assert short is not None
    assert str(short[0].content).startswith("begin")
    assert str(short[0].content).endswith("end")
    assert len(str(short[0].content)) < 30_000


# -- clients --------------------------------------------------------------------------------------


def test_how_often_a_client_tries_by_itself() -> None:
    openai = pytest.importorskip("langchain_openai")
    sdk = pytest.importorskip("openai")
    import httpx

    request = httpx.Request("POST", "http://127.0.0.1/v1")
    lost = sdk.APIConnectionError(request=request)
    network = Classification(ErrorCategory.RETRYABLE, "network", None, False, lost, "lost")
    for retries, tries in ((None, 3), (0, 1), (5, 6)):
        brain = openai.ChatOpenAI(model="gpt-4o", api_key="none", max_retries=retries)
        assert tries_of(brain, lost, network) == tries
        assert tries_of(brain.bind(stop=["x"]), lost, network) == tries
        broke = httpx.ReadError("reset")
        mid = Classification(ErrorCategory.RETRYABLE, "network", None, False, broke, "reset")
        assert tries_of(brain, broke, mid) == 1, "in mid-stream nobody tries again"
    fatal = Classification(ErrorCategory.FATAL, "authentication", None, True, lost, "no")
    assert tries_of(brain, lost, fatal) == 1


def test_a_configuration_file_may_say_what_is_done_about_answers(tmp_path: Path) -> None:
    file = tmp_path / "guard.toml"
    file.write_text("[boundary]\nanswers = { again = 1, restart_streams = true }\n")
    boundary = Guard.from_file(file).boundary
    assert isinstance(boundary, Boundary)
    assert boundary.answers == Answers(again=1, restart_streams=True)
    file.write_text("[boundary]\nanswers = { agian = 1 }\n")
    with pytest.raises(ConfigError, match="again"):
        Guard.from_file(file)
    for wrong in ({"again": -1}, {"again": True}, {"too_long": "cut"}):
        with pytest.raises(ConfigError):
            Answers(**wrong)  # type: ignore[arg-type]
