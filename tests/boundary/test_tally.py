"""The tally of a run's failures: it counts, decides two things, and stays bounded."""

from __future__ import annotations

import json
import threading

from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.boundary.tally import RunErrors, Terminations


def failure(category: ErrorCategory, kind: str = "rate_limit") -> Classification:
    return Classification(category, kind, None, True, ValueError(kind), f"{kind}: not now")


def test_every_failed_attempt_counts_where_it_happened() -> None:
    errors = RunErrors()
    errors.step("agent")
    errors.error(failure(ErrorCategory.RETRYABLE), tool="search", node="tools")
    errors.error(failure(ErrorCategory.RETRYABLE, "timeout"), tool="search", node="tools")
    errors.error(failure(ErrorCategory.FATAL, "authentication"), model="gpt")
    errors.error(failure(ErrorCategory.CONTROL, "interrupt"), node="agent")
    told = errors.snapshot()
    counted = {(place.kind, place.name): place for place in told.places}
    assert counted["tool", "search"].errors == 2
    assert counted["tool", "search"].types == {"rate_limit": 1, "timeout": 1}
    assert counted["model", "gpt"].errors == 1
    assert (counted["node", "agent"].steps, counted["node", "agent"].errors) == (1, 0)
    assert told.categories == {"retryable": 2, "fatal": 1}


def test_a_run_has_so_many_retries_and_no_more_whoever_asks() -> None:
    errors = RunErrors(retries=100)
    taken: list[bool] = []

    def work() -> None:
        taken.extend(errors.retry(tool="search") for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(True) == 100
    assert not errors.may_retry()
    assert RunErrors(retries=None).may_retry()


def test_fatal_errors_do_not_use_up_the_error_budget() -> None:
    errors = RunErrors(error_budget=2)
    errors.error(failure(ErrorCategory.RETRYABLE), tool="search")
    errors.error(failure(ErrorCategory.FATAL), tool="search")
    assert not errors.exhausted
    errors.error(failure(ErrorCategory.DEGRADABLE), model="gpt")
    assert errors.exhausted
    unbounded = RunErrors(error_budget=None)
    for _ in range(100):
        unbounded.error(failure(ErrorCategory.RETRYABLE), tool="search")
    assert not unbounded.exhausted


def test_its_memory_is_bounded_whatever_the_run_does() -> None:
    errors = RunErrors(error_budget=None, retries=None)
    for number in range(3000):
        where = f"tool{number}"
        errors.error(failure(ErrorCategory.RETRYABLE, f"kind{number}"), tool=where)
        errors.error(failure(ErrorCategory.RETRYABLE, f"kind{number}"), tool="one")
        errors.degraded("x" * 5000, tool=where)
        errors.fault("handler", ValueError("y" * 5000))
        errors.acted(f"action{number}")
    told = errors.snapshot()
    assert sum(place.errors for place in told.places) == 6000
    assert len(told.places) <= 101
    assert max(len(place.types) for place in told.places) <= 51
    assert len(json.dumps([told.failures, told.degradations, told.faults])) < 50_000
    assert len(told.actions) <= 51


def test_runs_of_a_guard_are_counted_with_those_that_an_error_has_left() -> None:
    ends = Terminations()
    for number in range(10):
        ends.ended(abnormal=number == 3)
    assert ends.counts() == (10, 1)
