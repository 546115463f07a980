"""A tool call through the boundary, in threads and in event loops."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from langgraph.errors import GraphInterrupt

from shearpin.boundary import (
    Availability,
    Cached,
    Effects,
    ErrorCategory,
    Retries,
    Static,
    ToolPolicy,
)
from shearpin.boundary.calls import Hooks
from shearpin.core.tools import ToolFacts
from shearpin.errors import StoreError
from shearpin.stores import MemoryStore
from tests.boundary.tool_bench import FEW, HOW, READ, Bench, Outcomes

pytestmark = pytest.mark.parametrize("how", HOW)

REFUSED = ConnectionRefusedError("connection refused")
SLOW = TimeoutError("no answer in 10 s")


class BrokenStore(MemoryStore):
    """Fails where it is told to."""

    def __init__(self, *operations: str) -> None:
        super().__init__()
        self.broken = set(operations)

    def get(self, key: str) -> Any:
        return self._or_fail("get", super().get, key)

    def put(self, key: str, value: str, **more: Any) -> Any:
        return self._or_fail("put", super().put, key, value, **more)

    def _or_fail(self, name: str, act: Any, *args: Any, **more: Any) -> Any:
        if name in self.broken:
            raise StoreError(f"{name}: the disk is full")
        return act(*args, **more)


# -- attempts --------------------------------------------------------------------------------------


def test_a_tool_that_works_is_run_once(how: str) -> None:
    bench, tool = Bench(how), Outcomes({"hits": 3})
    result = bench(tool, {"q": "x"})
    assert (result.success, result.output, result.attempts) == (True, {"hits": 3}, 1)
    assert tool.seen == [{"q": "x"}]
    assert bench.waits == []
    assert bench.tally.snapshot().places == ()


def test_what_passes_by_itself_is_tried_again(how: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW, SLOW, "found")
    result = bench(tool, facts=READ, policy=ToolPolicy(retries=FEW))
    assert (result.success, result.output, result.attempts) == (True, "found", 3)
    assert bench.waits == [1.0, 2.0]
    assert result.elapsed == 3.0
    (place,) = bench.tally.snapshot().places
    assert (place.name, place.errors, place.retries) == ("search", 2, 2)


def test_a_secret_that_an_error_repeats_is_told_to_nobody(how: str) -> None:
    bench, tool = Bench(how), Outcomes(RuntimeError("no login for bob/hunter2!"))
    result = bench(tool, {"user": "bob", "password": "hunter2!"})
    assert result.error_detail == "no login for bob/•••"
    assert "hunter2" not in result.text()
    assert "hunter2" not in repr(bench.tally.snapshot())


def test_attempts_are_bounded(how: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW)
    result = bench(tool, facts=READ, policy=ToolPolicy(retries=FEW))
    assert not result.success
    assert tool.calls == result.attempts == 3
    assert result.category is ErrorCategory.RETRYABLE
    assert result.error is SLOW
    assert result.error_type == "timeout"
    assert not result.outcome_unknown  # a read has no outcome to be unknown


@pytest.mark.parametrize(
    "facts", [None, ToolFacts(), ToolFacts(read_only=False), ToolFacts(destructive=True)]
)
def test_what_may_have_happened_is_tried_once(how: str, facts: ToolFacts | None) -> None:
    bench, tool = Bench(how), Outcomes(SLOW, "done")
    result = bench(tool, name="refund", facts=facts)
    assert tool.calls == 1
    assert result.outcome_unknown
    assert "Verify with a read" in result.text()


@pytest.mark.parametrize("name", ["get_page", "search", "list_orders"])
def test_a_verb_in_the_name_is_not_enough_to_try_again(how: str, name: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW, "done")
    result = bench(tool, name=name)
    assert tool.calls == 1
    assert not result.outcome_unknown  # but a read is not said to have happened or not


def test_what_certainly_did_not_happen_is_tried_again_for_any_tool(how: str) -> None:
    bench, tool = Bench(how), Outcomes(REFUSED, "done")
    result = bench(tool, name="refund", facts=ToolFacts(destructive=True))
    assert (result.success, tool.calls) == (True, 2)


def test_a_tool_that_did_several_things_is_not_tried_again_for_the_last_of_them(how: str) -> None:
    bench, tool = Bench(how), Outcomes(REFUSED, "done")
    result = bench(tool, name="settle", hooks=Hooks(composite=lambda: True))
    assert (result.success, tool.calls, result.outcome_unknown) == (False, 1, True)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("x"), TypeError("y")])
def test_what_will_fail_again_is_not_tried_again(how: str, error: Exception) -> None:
    bench, tool = Bench(how), Outcomes(error)
    assert not bench(tool, facts=READ).success
    assert tool.calls == 1


def test_the_wait_that_was_asked_for_is_kept(how: str) -> None:
    def busy(seconds: str) -> httpx.HTTPStatusError:
        request = httpx.Request("GET", "http://localhost")
        response = httpx.Response(429, headers={"Retry-After": seconds}, request=request)
        return httpx.HTTPStatusError("429", request=request, response=response)

    bench, tool = Bench(how), Outcomes(busy("7"), "found")
    assert bench(tool, policy=ToolPolicy(retries=FEW)).success
    assert bench.waits == [8.0]
    bench, tool = Bench(how), Outcomes(busy("60"), "found")
    result = bench(tool, policy=ToolPolicy(retries=FEW))
    assert (result.success, tool.calls, result.retry_after_seconds) == (False, 1, 60.0)
    assert "asks to wait 60 s" in result.text()


def test_the_retries_of_a_run_are_bounded(how: str) -> None:
    from shearpin.boundary.tally import RunErrors

    tally = RunErrors(retries=3)
    bench, tool = Bench(how, tally=tally), Outcomes(SLOW)
    for _ in range(4):
        bench(tool, facts=READ)
    assert tool.calls == 4 + 3


def test_another_attempt_needs_room(how: str) -> None:
    asked: list[float] = []

    def admit(wait: float) -> bool:
        asked.append(wait)
        return len(asked) < 2

    bench, tool = Bench(how), Outcomes(SLOW)
    policy = ToolPolicy(retries=Retries(attempts=9, base_seconds=1.0))
    result = bench(tool, facts=READ, policy=policy, hooks=Hooks(admit=admit))
    assert (tool.calls, result.attempts, asked, bench.waits) == (2, 2, [1.0, 2.0], [1.0])
    assert bench.tally.snapshot().places[0].retries == 1


def test_a_wait_is_told_of_however_it_ends(how: str) -> None:
    told: list[bool] = []
    bench, tool = Bench(how), Outcomes(SLOW, "x")
    bench(tool, facts=READ, hooks=Hooks(waiting=told.append))
    assert told == [True, False]


# -- control flow ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), GraphInterrupt()]
)
def test_control_flow_leaves_as_it_is(how: str, error: BaseException) -> None:
    bench, tool = Bench(how), Outcomes(error)
    if how == "async" and not isinstance(error, (GraphInterrupt, SystemExit)):
        pytest.skip("asyncio does not carry it through a task")
    with pytest.raises(type(error)) as raised:
        bench(tool, facts=READ, policy=ToolPolicy(effect=Effects(), fallbacks=[]))
    assert raised.value is error
    assert tool.calls == 1
    assert bench.tally.snapshot().places == ()


def test_what_the_host_claims_leaves_as_it_is(how: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW)
    with pytest.raises(TimeoutError) as raised:
        bench(tool, facts=READ, hooks=Hooks(passes=lambda error: error is SLOW))
    assert raised.value is SLOW


def test_an_interrupted_effect_can_be_carried_out_when_it_is_resumed(how: str) -> None:
    bench, tool = Bench(how), Outcomes(GraphInterrupt(), "sent")
    policy = ToolPolicy(effect=Effects())
    with pytest.raises(GraphInterrupt):
        bench(tool, name="send", policy=policy)
    assert bench(tool, name="send", policy=policy).output == "sent"


# -- effects ---------------------------------------------------------------------------------------

ONCE = ToolPolicy(effect=Effects())


def test_the_same_call_carried_out_again_gets_the_first_result(how: str) -> None:
    bench, tool = Bench(how), Outcomes({"id": 7}, {"id": 8})
    first = bench(tool, {"to": "ann"}, name="send", policy=ONCE)
    again = bench(tool, {"to": "ann"}, name="send", policy=ONCE)
    assert tool.calls == 1
    assert first.output == again.output == {"id": 7}
    assert again.degraded is None  # to the very same call it is the result
    assert again.attempts == 0


def test_another_call_for_the_same_effect_is_told_so(how: str) -> None:
    bench, tool = Bench(how), Outcomes("sent", "sent twice")
    bench(tool, {"to": "ann"}, name="send", policy=ONCE)
    bench.clock.advance(40)
    other = bench(tool, {"to": "ann"}, name="send", call="c2", policy=ONCE)
    assert (tool.calls, other.output, other.degraded, other.age_seconds) == (
        1,
        "sent",
        "earlier",
        40,
    )
    assert bench(tool, {"to": "bob"}, name="send", call="c3", policy=ONCE).output == "sent twice"
    assert bench(tool, {"to": "ann"}, name="send", thread="u", policy=ONCE).output == "sent twice"


def test_an_unknown_outcome_keeps_the_next_call_from_being_made(how: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW, "sent")
    assert bench(tool, name="send", policy=ONCE).outcome_unknown
    for call in ("c1", "c2"):
        again = bench(tool, name="send", call=call, policy=ONCE)
        assert (again.success, again.error_type, again.attempts) == (False, "outcome_unknown", 0)
    assert tool.calls == 1


def test_an_unknown_outcome_is_no_matter_where_twice_is_as_once(how: str) -> None:
    bench, tool = Bench(how), Outcomes(SLOW, SLOW, SLOW, "put")
    facts = ToolFacts(idempotent=True)
    assert not bench(tool, name="put", facts=facts, policy=ONCE).success
    assert bench(tool, name="put", call="c2", facts=facts, policy=ONCE).output == "put"


def test_what_certainly_did_not_happen_leaves_no_record(how: str) -> None:
    bench, tool = Bench(how), Outcomes(REFUSED, REFUSED, REFUSED, "sent")
    first = bench(tool, name="send", policy=ONCE)
    assert (first.success, first.attempts, first.outcome_unknown) == (False, 3, False)
    assert bench(tool, name="send", call="c2", policy=ONCE).output == "sent"


def test_interval_and_cap_are_kept(how: str) -> None:
    policy = ToolPolicy(effect=Effects(min_interval_seconds=60, at_most=2))
    bench, tool = Bench(how), Outcomes("sent")
    assert bench(tool, {"n": 1}, name="sms", call="1", policy=policy).success
    soon = bench(tool, {"n": 2}, name="sms", call="2", policy=policy)
    assert (soon.error_type, soon.retry_after_seconds) == ("too_soon", 60.0)
    bench.clock.advance(60)
    assert bench(tool, {"n": 2}, name="sms", call="2", policy=policy).success
    bench.clock.advance(60)
    assert bench(tool, {"n": 3}, name="sms", call="3", policy=policy).error_type == "too_many"
    assert tool.calls == 2


def test_a_tool_declared_to_act_is_carried_out_once_for_each_call(how: str) -> None:
    facts = ToolFacts(destructive=True)
    bench, tool = Bench(how), Outcomes("gone", "gone again")
    assert bench(tool, {"f": 1}, name="delete", facts=facts).output == "gone"
    assert bench(tool, {"f": 1}, name="delete", facts=facts).output == "gone"
    other = bench(tool, {"f": 1}, name="delete", call="c2", facts=facts)
    assert (other.output, tool.calls) == ("gone again", 2)


def test_of_such_calls_long_results_are_kept_shortened(how: str) -> None:
    facts = ToolFacts(destructive=True)
    bench, tool = Bench(how), Outcomes("x" * 20_000)
    assert len(str(bench(tool, name="delete", facts=facts).output)) == 20_000
    again = bench(tool, name="delete", facts=facts)
    assert (tool.calls, again.degraded) == (1, "earlier")
    assert len(str(again.output)) < 5_000


def test_arguments_that_do_not_fit_leave_no_record(how: str) -> None:
    wrong = ValueError("to: field required")
    bench, tool = Bench(how), Outcomes(wrong, "sent")
    hooks = Hooks(unrun=lambda error: error is wrong)
    policy = ToolPolicy(effect=Effects(), fallbacks=[Static("never")])
    first = bench(tool, name="send", policy=policy, hooks=hooks)
    assert (first.success, first.outcome_unknown) == (False, False)
    assert bench(tool, name="send", call="c2", policy=policy, hooks=hooks).output == "sent"


def test_a_key_that_does_not_fit_keeps_the_tool_from_being_run(how: str) -> None:
    bench, tool = Bench(how), Outcomes("sent")
    policy = ToolPolicy(effect=Effects(key=("to",)))
    result = bench(tool, {"text": "hello"}, name="send", policy=policy)
    assert (result.success, result.error_type, tool.calls) == (False, "configuration", 0)
    assert "Effects.key" in str(bench.faults[0][1])


def test_an_answer_that_the_host_made_of_a_failure_stays_and_is_recorded(how: str) -> None:
    bench, tool = Bench(how), Outcomes("Error: slow", "sent")
    hooks = Hooks(handled=lambda output: SLOW if output == "Error: slow" else None)
    policy = ToolPolicy(effect=Effects(), fallbacks=[Static("never")])
    result = bench(tool, name="send", policy=policy, hooks=hooks)
    assert (result.output, result.success, result.attempts) == ("Error: slow", False, 1)
    assert bench.tally.snapshot().places[0].errors == 1
    again = bench(tool, name="send", call="c2", policy=policy, hooks=hooks)
    assert (again.error_type, tool.calls) == ("outcome_unknown", 1)


def test_without_its_record_a_tool_is_not_run_unless_the_policy_says_so(how: str) -> None:
    for operations in (("get",), ("put",), ("get", "put")):
        bench, tool = Bench(how, BrokenStore(*operations)), Outcomes("sent")
        result = bench(tool, name="send", policy=ONCE)
        assert (tool.calls, result.success, result.error_type) == (0, False, "store")
        assert bench.faults
        bench, tool = Bench(how, BrokenStore(*operations)), Outcomes("sent")
        run = ToolPolicy(effect=Effects(on_fault="run"))
        assert bench(tool, name="send", policy=run).output == "sent"
        assert bench.faults


def test_a_store_that_fails_afterwards_changes_no_result_and_allows_no_second_effect(
    how: str,
) -> None:
    store = BrokenStore()
    bench = Bench(how, store)

    def send() -> str:
        store.broken.add("put")
        return "sent"

    assert bench(send, name="send", policy=ONCE).output == "sent"
    assert bench.faults
    store.broken.clear()
    again = bench(Outcomes("twice"), name="send", call="c2", policy=ONCE)
    assert (again.success, again.error_type) == (False, "in_progress")


def test_of_calls_side_by_side_one_goes_ahead(how: str) -> None:
    bench = Bench(how)
    running, go = threading.Barrier(2), threading.Event()
    calls: list[str] = []

    def send() -> str:
        calls.append("sent")
        running.wait(10)
        go.wait(10)
        return "sent"

    found: list[Any] = []
    first = threading.Thread(
        target=lambda: found.append(bench(send, name="send", call="c1", policy=ONCE))
    )
    first.start()
    running.wait(10)
    second = bench(Outcomes("twice"), name="send", call="c2", policy=ONCE)
    go.set()
    first.join(10)
    assert (second.success, second.error_type) == (False, "in_progress")
    assert found[0].output == "sent"
    assert calls == ["sent"]


# -- fallbacks -------------------------------------------------------------------------------------


def test_the_first_fallback_that_works_counts(how: str) -> None:
    broken, backup = Outcomes(KeyError("index")), Outcomes("from the backup")
    broken.__name__, backup.__name__ = "mirror", "backup"  # type: ignore[attr-defined]
    policy = ToolPolicy(fallbacks=[broken, backup, Static("never")])
    bench = Bench(how)
    result = bench(Outcomes(REFUSED), {"q": "x"}, policy=policy)
    assert (result.success, result.output, result.degraded) == (
        True,
        "from the backup",
        "tool:backup",
    )
    assert result.error_type == "network"
    assert broken.seen == backup.seen == [{"q": "x"}]
    names = {place.name: place for place in bench.tally.snapshot().places}
    assert (names["mirror"].errors, names["search"].degraded) == (1, 1)


def test_where_all_fallbacks_fail_the_failure_is_the_tools_own(how: str) -> None:
    policy = ToolPolicy(fallbacks=[Outcomes(KeyError("x")), Cached()])
    result = Bench(how)(Outcomes(REFUSED), policy=policy)
    assert (result.success, result.error, result.degraded) == (False, REFUSED, None)


def test_the_last_good_result_is_given_with_its_age(how: str) -> None:
    policy = ToolPolicy(fallbacks=[Cached(max_age_seconds=100)])
    bench = Bench(how)
    assert bench(Outcomes("fresh"), {"q": "x"}, policy=policy).output == "fresh"
    bench.clock.advance(40)
    down = Outcomes(ValueError("down"))
    stale = bench(down, {"q": "x"}, policy=policy)
    assert (stale.output, stale.degraded, stale.age_seconds) == ("fresh", "cached", 40.0)
    assert "from 40 s ago" in stale.text()
    assert not bench(down, {"q": "y"}, policy=policy).success
    assert not bench(down, {"q": "x"}, thread="other", policy=policy).success
    assert not bench(down, {"q": "x"}, name="other", policy=policy).success
    bench.clock.advance(61)
    assert not bench(down, {"q": "x"}, policy=policy).success


def test_a_result_may_be_shared_where_it_is_said_to_be_the_same_for_all(how: str) -> None:
    policy = ToolPolicy(fallbacks=[Cached(shared=True)])
    bench = Bench(how)
    bench(Outcomes("fresh"), {"q": "x"}, policy=policy)
    assert bench(Outcomes(ValueError()), {"q": "x"}, thread="u", policy=policy).output == "fresh"


def test_what_cannot_be_kept_is_not_made_up(how: str) -> None:
    policy = ToolPolicy(fallbacks=[Cached()])
    bench = Bench(how)
    bench(Outcomes(object()), {"q": "x"}, policy=policy)
    bench(Outcomes("x" * 300_000), {"q": "y"}, policy=policy)
    bench(Outcomes("fine"), {"q": object()}, policy=policy)
    for args in ({"q": "x"}, {"q": "y"}, {"q": object()}):
        assert not bench(Outcomes(ValueError()), args, policy=policy).success


def test_a_failing_store_costs_no_result(how: str) -> None:
    bench = Bench(how, BrokenStore("get", "put"))
    policy = ToolPolicy(fallbacks=[Cached(), Static("none")])
    assert bench(Outcomes("fresh"), policy=policy).output == "fresh"
    assert bench(Outcomes(ValueError()), policy=policy).output == "none"
    assert len(bench.faults) == 2


def test_nothing_takes_the_place_of_what_must_not_degrade(how: str) -> None:
    policy = ToolPolicy(never_degrade=True)
    assert not Bench(how)(Outcomes(REFUSED), policy=policy).success


def test_nothing_takes_the_place_of_an_effect_that_may_have_happened(how: str) -> None:
    other = Outcomes("sent by the other")
    policy = ToolPolicy(effect=Effects(), fallbacks=[other, Static("sent")])
    result = Bench(how)(Outcomes(SLOW), name="send", policy=policy)
    assert (result.success, result.outcome_unknown, other.calls) == (False, True, 0)


def test_an_effect_that_another_tool_had_is_not_had_again(how: str) -> None:
    other, bench = Outcomes("sent by the other"), Bench(how)
    policy = ToolPolicy(effect=Effects(), fallbacks=[other])
    first = bench(Outcomes(REFUSED), name="send", policy=policy)
    assert first.output == "sent by the other"
    again = bench(Outcomes("sent"), name="send", call="c2", policy=policy)
    assert (again.output, again.degraded) == ("sent by the other", "earlier")


def test_after_a_fallback_that_may_have_acted_no_other_is_tried(how: str) -> None:
    slow, third, bench = Outcomes(SLOW), Outcomes("sent"), Bench(how)
    policy = ToolPolicy(effect=Effects(), fallbacks=[slow, third])
    result = bench(Outcomes(REFUSED), name="send", policy=policy)
    assert (result.success, result.outcome_unknown, third.calls) == (False, True, 0)
    again = bench(Outcomes("sent"), name="send", call="c2", policy=policy)
    assert again.error_type == "outcome_unknown"


def test_control_flow_in_a_fallback_leaves(how: str) -> None:
    policy = ToolPolicy(fallbacks=[Outcomes(GraphInterrupt()), Static("never")])
    with pytest.raises(GraphInterrupt):
        Bench(how)(Outcomes(REFUSED), policy=policy)


# -- availability ----------------------------------------------------------------------------------


def test_what_keeps_failing_is_left_alone_for_a_while(how: str) -> None:
    settings = Availability(min_calls=4, open_seconds=30, probe_lease_seconds=10)
    policy = ToolPolicy(
        availability=settings, retries=Retries(attempts=1), fallbacks=[Static("later")]
    )
    bench, tool = Bench(how), Outcomes(SLOW)
    for _ in range(4):
        bench(tool, facts=READ, policy=policy)
    assert tool.calls == 4
    down = bench(tool, facts=READ, policy=policy)
    assert (tool.calls, down.attempts, down.output) == (4, 0, "later")
    assert down.error_type == "unavailable"
    assert down.retry_after_seconds == pytest.approx(30)
    bench.clock.advance(30)
    assert bench(Outcomes("well again"), facts=READ, policy=policy).output == "well again"
    assert bench(Outcomes("well"), facts=READ, policy=policy).attempts == 1


def test_a_mistake_does_not_speak_against_the_tool(how: str) -> None:
    policy = ToolPolicy(availability=Availability(min_calls=2))
    bench, tool = Bench(how), Outcomes(ValueError("no such order"))
    for _ in range(6):
        assert bench(tool, policy=policy).attempts == 1
    assert tool.calls == 6


def test_a_probe_that_is_interrupted_is_free_for_another(how: str) -> None:
    policy = ToolPolicy(
        availability=Availability(min_calls=1, open_seconds=5, probe_lease_seconds=1000),
        retries=Retries(attempts=1),
    )
    bench = Bench(how)
    bench(Outcomes(SLOW), facts=READ, policy=policy)
    bench.clock.advance(5)
    with pytest.raises(GraphInterrupt):
        bench(Outcomes(GraphInterrupt()), facts=READ, policy=policy)
    assert bench(Outcomes("well"), facts=READ, policy=policy).output == "well"


def test_a_failing_store_lets_everything_in(how: str) -> None:
    bench = Bench(how, BrokenStore("get", "put"))
    policy = ToolPolicy(availability=Availability(min_calls=1))
    assert bench(Outcomes("fine"), policy=policy).output == "fine"
    assert bench.faults
