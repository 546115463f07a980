"""Each rule: fires at exactly its thresholds, stays quiet where it should, keeps to its ceiling."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shearpin.core.breaker import BreakerSettings
from shearpin.core.detectors import (
    DEFAULT_DETECTORS,
    Cycles,
    Duplicates,
    ErrorStreaks,
    Monologues,
    Repeats,
    Stagnations,
    UnknownTools,
)
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.events import (
    HistoryCompacted,
    ModelCalled,
    ModelReturned,
    NodeLeft,
    ToolCalled,
    ToolRequest,
)
from shearpin.findings import Severity
from shearpin.verdicts import Block, Halt, Nudge
from tests.core.driving import Call, Driver, finding_of, first_at

NUDGE, BLOCK, STOP = Severity.NUDGE, Severity.BLOCK, Severity.STOP
PATIENT = BreakerSettings(trial_rounds=99, persist_rounds=99, refused_rounds=99)
"""A breaker that does not end a run by itself, so that a rule's own thresholds are seen."""


def drive(*detectors: object, **settings: object) -> Driver:
    settings.setdefault("breaker", PATIENT)
    return Driver(*detectors, **settings)  # type: ignore[arg-type]


def levels(given: list[list[Severity]]) -> tuple[int | None, int | None, int | None]:
    return first_at(given, NUDGE), first_at(given, BLOCK), first_at(given, STOP)


# -- repeat ---------------------------------------------------------------------------------------


def test_repeat_fires_at_exactly_its_thresholds() -> None:
    driver = drive(Repeats(nudge=3, block=5, stop=8))
    assert levels(driver.steps(8, Call())) == (3, 5, 8)
    assert driver.session.state == "open"


def test_repeat_says_what_it_saw() -> None:
    driver = drive(Repeats(nudge=2))
    driver.step(Call())
    (verdict,) = driver.step(Call())
    found = finding_of(verdict)
    assert isinstance(verdict, Nudge)
    assert (found.family, found.count, found.limit, found.onset_step) == ("repeat", 2, 2, 1)
    assert (found.subject, found.agent, found.step) == ("search", "main", 2)
    assert "search" in verdict.message


def test_repeat_without_block_and_stop_only_tells() -> None:
    driver = drive(Repeats(nudge=3, block=None, stop=None, error_stop=None))
    assert levels(driver.steps(20, Call())) == (3, None, None)


def test_repeat_counts_whatever_reads_lie_between() -> None:
    driver = drive(Repeats(nudge=3, block=None, stop=None))
    said = []
    for n in range(3):
        said.append([v.severity for v in driver.step(Call())])
        driver.step(Call("read_file", {"path": f"f{n}"}, f"content {n}"))
    assert levels(said) == (3, None, None)


def test_repeat_starts_afresh_after_new_work() -> None:
    driver = drive(Repeats(nudge=3))
    for n in range(10):
        assert driver.step(Call("run_tests", {}, "1 failed")) == []
        assert driver.step(Call("edit_file", {"path": "a", "text": str(n)}, "ok")) == []


def test_repeat_is_not_fooled_by_failed_or_repeated_work() -> None:
    driver = drive(Repeats(nudge=3, block=None, stop=None))
    said = []
    for n in range(3):
        said.append([v.severity for v in driver.step(Call())])
        driver.step(Call("edit_file", {"text": str(n)}, f"Error: no such file {n}"))
        driver.step(Call("edit_file", {"text": "same"}, f"done {n}"))
    # the first of the equal edits was new work, so counting starts behind it
    assert first_at(said, NUDGE) is None
    assert any(v.severity is NUDGE for v in driver.step(Call()))


def test_repeat_is_quiet_while_results_change() -> None:
    driver = drive(Repeats(nudge=2))
    for n in range(30):
        assert driver.step(Call(result=f"{n} of 30")) == []


def test_repeat_sees_through_volatile_results() -> None:
    driver = drive(Repeats(nudge=3))
    said = [
        [v.severity for v in driver.step(Call(result=f"nothing new, took {n} ms"))]
        for n in range(3)
    ]
    assert first_at(said, NUDGE) == 3


def test_repeat_counts_a_parallel_batch_once() -> None:
    driver = drive(Repeats(nudge=3, block=None, stop=None))
    assert levels(driver.steps(3, Call(), Call(), Call())) == (3, None, None)


def test_repeat_forgets_what_is_out_of_its_window() -> None:
    driver = drive(Repeats(nudge=3, window=5))
    for _ in range(6):
        assert driver.step(Call()) == []
        for n in range(3):
            assert driver.step(Call("read_file", {"n": n, "r": driver.at}, str(driver.at))) == []


def test_repeat_waits_with_a_patient_agent() -> None:
    driver = drive(Repeats(nudge=3, patient_seconds=60), seconds=61)
    assert levels(driver.steps(30, Call("job_status", {"id": 1}, "running, 3 of 9"))) == (
        None,
        None,
        None,
    )
    hasty = drive(Repeats(nudge=3, patient_seconds=60), seconds=59)
    assert first_at(hasty.steps(3, Call("job_status", {"id": 1}, "three of nine")), NUDGE) == 3


def test_repeat_does_not_wait_with_errors() -> None:
    driver = drive(Repeats(nudge=3), seconds=600)
    assert first_at(driver.steps(3, Call(result="boom", status="error")), NUDGE) == 3


def test_repeat_only_hints_at_outages_and_polling() -> None:
    driver = drive(Repeats(nudge=3))
    calls = Call(result="Error: 503 service unavailable", status="error")
    assert levels(driver.steps(15, calls)) == (3, None, None)
    polled = drive(Repeats(nudge=3), tools={"check": ToolFacts(polling=True)})
    assert levels(polled.steps(20, Call("check", {}, "still three of nine"))) == (3, None, None)


def test_repeat_says_nothing_of_waiting_tools() -> None:
    driver = drive(Repeats(nudge=2))
    assert levels(driver.steps(20, Call("sleep", {"seconds": 1}, "slept"))) == (None, None, None)


def test_repeat_keeps_agents_apart() -> None:
    driver = drive(Repeats(nudge=3))
    for _ in range(2):
        for agent in ("a", "b", "c"):
            assert driver.step(Call(), agent=agent) == []


def test_repeat_keeps_to_its_ceiling() -> None:
    driver = drive(Repeats(nudge=3, ceiling=NUDGE))
    assert levels(driver.steps(20, Call())) == (3, None, None)
    silent = drive(Repeats(nudge=3, ceiling=Severity.NONE))
    assert levels(silent.steps(20, Call())) == (None, None, None)


def test_compaction_discounts_what_was_summarised_away() -> None:
    driver = drive(Repeats(nudge=3, block=None, stop=None))
    driver.steps(2, Call())
    driver.session.after(HistoryCompacted(driver.at, "main"))
    assert levels(driver.steps(2, Call())) == (2, None, None)


def test_a_second_compaction_excuses_nothing_more() -> None:
    """V04: after each summary the agent explores the same places once more, and writes nothing."""
    driver = drive(Repeats(nudge=3, block=None, stop=None))
    said: list[list[Severity]] = []
    for _ in range(5):
        said += driver.steps(1, Call())
        driver.session.after(HistoryCompacted(driver.at, "main"))
    assert levels(said) == (4, None, None)


def test_a_blocked_call_counts_on() -> None:
    """The agent insists: what it asks for is refused, and in the end the run is over."""
    driver = drive(Repeats(nudge=2, block=3, stop=5, error_stop=5))
    verdicts = [driver.step(Call()) for _ in range(5)]
    assert [type(v).__name__ for step in verdicts for v in step] == [
        "Nudge",
        "Block",
        "Block",
        "Block",
        "Halt",
    ] or levels([[v.severity for v in step] for step in verdicts])[2] == 5


# -- cycle ----------------------------------------------------------------------------------------


def laps(driver: Driver, times: int, *rounds: Call) -> tuple[int | None, int | None, int | None]:
    """Goes through the same rounds again and again; in which lap each level was reached first."""
    said = []
    for _ in range(times):
        lap = [v.severity for call in rounds for v in driver.step(call)]
        said.append(lap)
    return levels(said)


ROUNDS = [Call("read_file", {"path": str(n)}, f"content {n} of it") for n in range(7)]


@pytest.mark.parametrize("period", [2, 3, 4, 5, 6])
def test_cycle_fires_at_exactly_its_laps(period: int) -> None:
    driver = drive(Cycles(nudge=3, block=5, stop=8))
    assert laps(driver, 8, *ROUNDS[:period]) == (3, 5, 8)


def test_cycle_longer_than_its_longest_is_left_alone() -> None:
    assert laps(drive(Cycles()), 10, *ROUNDS[:7]) == (None, None, None)
    assert laps(drive(Cycles(longest=3)), 10, *ROUNDS[:4]) == (None, None, None)


def test_cycle_is_quiet_while_a_result_changes() -> None:
    driver = drive(Cycles(nudge=2))
    for n in range(10):
        assert driver.step(ROUNDS[0]) == []
        assert driver.step(Call("read_file", {"path": "x"}, f"{n} done")) == []


def test_cycle_leaves_single_rounds_to_repeat() -> None:
    assert levels(drive(Cycles(nudge=2)).steps(20, Call())) == (None, None, None)


def test_cycle_does_not_mind_the_order_in_which_a_batch_returns() -> None:
    driver = drive(Cycles(nudge=3, block=None, stop=None))
    one, other, third = ROUNDS[:3]
    said = []
    for n in range(3):
        batch = (one, other) if n % 2 else (other, one)
        said.append([v.severity for v in [*driver.step(*batch), *driver.step(third)]])
    assert levels(said) == (3, None, None)


def test_cycle_waits_with_patient_laps() -> None:
    assert laps(drive(Cycles(), seconds=100), 10, *ROUNDS[:2]) == (None, None, None)


def test_cycle_with_waiting_in_it_is_only_hinted_at() -> None:
    driver = drive(Cycles(nudge=3, block=5, stop=8))
    lap = (Call("sleep", {"seconds": 1}, "ok"), Call("job_status", {}, "running"))
    assert laps(driver, 12, *lap) == (3, None, None)


def test_cycle_of_two_agents_is_seen() -> None:
    driver = drive(Cycles(nudge=3, block=None, stop=None))
    said = []
    for _ in range(4):
        lap = [
            *driver.step(text="Please fix it.", agent="reviewer"),
            *driver.step(text="Please review it.", agent="coder"),
        ]
        said.append([v.severity for v in lap])
    assert first_at(said, NUDGE) in (3, 4)


def test_cycle_of_nodes_counts_only_where_a_model_was_paid() -> None:
    def go(paid: bool) -> int | None:
        driver = drive(Cycles(nudge=3, block=None, stop=None))
        said = []
        for n in range(12):
            if paid:
                driver.session.before(ModelCalled(n, f"m{n}"))
                driver.session.after(
                    ModelReturned(
                        n, f"m{n}", text=f"words {n}", requests=(ToolRequest("x", "y", {}),)
                    )
                )
            node = ("plan", "act")[n % 2]
            verdict = driver.session.after(NodeLeft(n, node, f"t{n}", delta=f"delta of {node}"))
            said.append([verdict.severity])
        return first_at(said, NUDGE)

    assert go(paid=True) == 6
    assert go(paid=False) is None


def test_cycle_of_nodes_needs_one_model_call_a_lap() -> None:
    driver = drive(Cycles(nudge=3, block=None, stop=None))
    verdict = None
    for lap in range(1, 4):
        asked = (ToolRequest("x", "y", {}),)
        driver.session.after(ModelReturned(lap, f"m{lap}", text=f"draft {lap}", requests=asked))
        driver.session.after(NodeLeft(lap, "write", f"w{lap}", delta="same"))
        verdict = driver.session.after(NodeLeft(lap, "review", f"r{lap}", delta="no"))
    assert isinstance(verdict, Nudge)


# -- unknown_tool ---------------------------------------------------------------------------------


def unknown(tool: str = "frob", n: int = 0) -> Call:
    return Call(tool, {"n": n}, f"Error: {tool} is not a valid tool", "unknown_tool")


def test_unknown_tool_fires_at_exactly_its_thresholds() -> None:
    driver = drive(UnknownTools(nudge=2, block=4, stop=8))
    said = [[v.severity for v in driver.step(unknown(n=n))] for n in range(8)]
    assert levels(said) == (2, 4, 8)


def test_unknown_names_are_counted_together() -> None:
    driver = drive(UnknownTools(nudge=3, block=None, stop=None))
    said = [[v.severity for v in driver.step(unknown(f"tool{n}"))] for n in range(3)]
    assert first_at(said, NUDGE) == 3


def test_a_new_call_that_succeeds_ends_the_streak_of_names() -> None:
    driver = drive(UnknownTools(nudge=2))
    for n in range(10):
        assert driver.step(unknown(f"tool{n}")) == []
        assert driver.step(Call(args={"q": n})) == []


def test_unreadable_arguments_are_counted_per_tool() -> None:
    driver = drive(UnknownTools(args_nudge=3, args_block=5, args_stop=8))
    bad = Call("search", "{broken", "arguments could not be parsed", "bad_args")
    assert levels(driver.steps(8, bad)) == (3, 5, 8)
    apart = drive(UnknownTools(args_nudge=3))
    for n in range(9):
        call = Call(f"tool{n % 5}", "{broken", "arguments could not be parsed", "bad_args")
        assert apart.step(call) == [] or n >= 10


def test_a_success_of_the_tool_clears_its_unreadable_arguments() -> None:
    driver = drive(UnknownTools(args_nudge=2))
    for n in range(5):
        assert driver.step(Call("search", f"{{broken {n}", "x", "bad_args")) == []
        assert driver.step(Call("search", {"q": n})) == []


def test_unknown_tool_is_bounded_by_its_ceiling() -> None:
    driver = drive(UnknownTools(ceiling=NUDGE))
    said = [[v.severity for v in driver.step(unknown(n=n))] for n in range(12)]
    assert levels(said) == (2, None, None)


# -- monologue ------------------------------------------------------------------------------------

TALK = "I will now check the configuration file for you."


def test_monologue_fires_at_exactly_its_thresholds() -> None:
    driver = drive(Monologues(nudge=3, stop=6))
    assert levels(driver.steps(6, text=TALK)) == (3, 6, 6)


def test_blank_messages_are_a_monologue() -> None:
    driver = drive(Monologues(nudge=3, stop=6))
    said = [driver.step(text=text) for text in ("", "  ", "\n")]
    assert finding_of(said[2][0]).cause == "says_nothing"


def test_monologue_sees_through_numbers_case_and_filler() -> None:
    driver = drive(Monologues(nudge=3))
    texts = [
        "Still working, attempt 1 of the upload to the server is running now, please wait.",
        "still working, attempt 2 of the upload to the server is running now, please wait",
        "Still working: attempt 3 of the upload to the server is running now, please wait!",
    ]
    said = [[v.severity for v in driver.step(text=text)] for text in texts]
    assert first_at(said, NUDGE) == 3


def test_long_messages_must_be_equal() -> None:
    driver = drive(Monologues(nudge=2, near_characters=50))
    for n in range(10):
        assert driver.step(text=TALK * 5 + " ".join("abcdefghij"[: n + 1])) == []


def test_monologue_is_quiet_while_there_is_something_to_say() -> None:
    driver = drive(Monologues(nudge=2))
    words = ["alpha beta gamma", "one two three", "red green blue", "uno dos tres"]
    for n in range(12):
        assert driver.step(text=words[n % 4]) == []


def test_a_tool_call_ends_a_monologue() -> None:
    driver = drive(Monologues(nudge=2))
    for _ in range(5):
        assert driver.step(text=TALK) == []
        assert driver.step(Call()) == []


def test_monologue_keeps_to_its_ceiling() -> None:
    driver = drive(Monologues(ceiling=NUDGE))
    assert levels(driver.steps(12, text=TALK)) == (3, None, None)


# -- error_streak ---------------------------------------------------------------------------------


def failing(n: int, text: str = "Could not find [{n}] in the index") -> Call:
    return Call("lookup", {"key": f"key{n}"}, text.format(n=n), "error")


def test_error_streak_fires_at_exactly_its_thresholds() -> None:
    driver = drive(ErrorStreaks(nudge=4, block=6))
    said = [[v.severity for v in driver.step(failing(n))] for n in range(8)]
    assert levels(said) == (4, 6, None)


def test_error_streak_ends_with_a_success() -> None:
    driver = drive(ErrorStreaks(nudge=3))
    for n in range(12):
        calls = [failing(n), failing(n + 100), Call("lookup", {"key": f"good{n}"}, "found it")]
        assert driver.step(calls[n % 3]) == []


TROUBLES = ("permission denied", "index is corrupt, error", "fatal: no such table", "invalid key")


@pytest.mark.parametrize(("kinds", "told_at"), [(1, 3), (2, 5), (3, 7), (4, None)])
def test_error_streak_goes_on_through_other_failures_of_at_most_three_kinds(
    kinds: int, told_at: int | None
) -> None:
    driver = drive(ErrorStreaks(nudge=3, block=None))
    said = [bool(driver.step(failing(n, TROUBLES[n % kinds]))) for n in range(12)]
    assert (said.index(True) + 1 if any(said) else None) == told_at


@pytest.mark.parametrize("command", ["pytest -q t{}.py", "cd app && npx eslint src/{}.ts"])
def test_a_test_that_says_the_same_of_several_things_is_at_most_remarked_on(command: str) -> None:
    driver = drive(ErrorStreaks(nudge=3, block=4))
    calls = [
        Call("bash", {"command": command.format(n)}, "exit code 1\nplugin is missing")
        for n in range(9)
    ]
    said = [[v.severity for v in driver.step(call)] for call in calls]
    assert levels(said) == (3, None, None)


def test_error_streak_ends_with_new_work() -> None:
    driver = drive(ErrorStreaks(nudge=3))
    for n in range(8):
        assert driver.step(failing(n)) == []
        assert driver.step(Call("write_file", {"n": n}, "written")) == []


def test_error_streak_only_hints_at_outages_and_emptiness() -> None:
    driver = drive(ErrorStreaks(nudge=3, block=4))
    said = [
        [v.severity for v in driver.step(failing(n, "503 service unavailable"))] for n in range(9)
    ]
    assert levels(said) == (3, None, None)
    empty = drive(ErrorStreaks(nudge=3, block=4))
    said = [[v.severity for v in empty.step(Call("search", {"q": n}, "[]"))] for n in range(9)]
    assert levels(said) == (3, None, None)


def test_error_streak_counts_a_batch_once() -> None:
    driver = drive(ErrorStreaks(nudge=3))
    said = []
    for n in range(3):
        batch = [failing(n * 10 + i) for i in range(4)]
        said.append([v.severity for v in driver.step(*batch)])
    assert first_at(said, NUDGE) == 3


# -- duplicate_in_message -------------------------------------------------------------------------


def test_copies_in_one_message_are_refused() -> None:
    driver = drive(Duplicates())
    verdicts = driver.step(*[Call("run_tests", {}, "1 failed")] * 4)
    assert [type(v) for v in verdicts] == [Block, Block, Block]
    assert [finding_of(v).count for v in verdicts] == [2, 3, 4]
    assert driver.step(Call("run_tests", {}, "1 failed")) == [], "the next message may ask again"


def test_different_calls_are_no_copies() -> None:
    driver = drive(Duplicates())
    assert driver.step(*[Call("search", {"q": n}, str(n)) for n in range(20)]) == []


def test_asking_again_for_the_same_call_is_no_copy() -> None:
    """A resumed step announces its calls again, with the same ids."""
    session = drive(Duplicates()).session
    requests = (ToolRequest("c1", "t", {}), ToolRequest("c2", "t", {}))
    session.before(ModelCalled(0, "m1"))
    session.after(ModelReturned(0, "m1", requests=requests))
    for _ in range(3):
        assert session.before(ToolCalled(1, "c1", "t", {})).severity is Severity.NONE
        assert session.before(ToolCalled(1, "c2", "t", {})).severity is BLOCK


def test_copies_are_let_through_below_block() -> None:
    driver = drive(Duplicates(ceiling=NUDGE))
    assert BLOCK not in [v.severity for v in driver.step(*[Call()] * 3)]


# -- stagnation -----------------------------------------------------------------------------------

PAGE = "Welcome to the portal. Please choose one of the departments below to go on."


def test_stagnation_fires_at_exactly_its_threshold_and_only_hints() -> None:
    driver = drive(Stagnations(nudge=6))
    said = [[v.severity for v in driver.step(Call("search", {"q": n}, PAGE))] for n in range(20)]
    assert levels(said) == (6, None, None)


def test_stagnation_is_quiet_while_results_differ() -> None:
    driver = drive(Stagnations(nudge=3))
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()
    for n in range(24):
        text = " ".join(words[(n + i) * 5 % 12] for i in range(4))
        assert driver.step(Call("search", {"q": n}, text)) == []


def test_stagnation_leaves_short_answers_and_writes_alone() -> None:
    driver = drive(Stagnations(nudge=2))
    assert levels(driver.steps(9, Call("search", {"q": 1}, "reserved"))) == (None, None, None)
    for n in range(9):
        assert driver.step(Call("write_file", {"n": n}, PAGE)) == []


# -- all of them ----------------------------------------------------------------------------------


def test_a_new_turn_starts_afresh() -> None:
    scenarios: list[Callable[[Driver, int], list[object]]] = [
        lambda d, n: d.step(Call()),
        lambda d, n: d.step(unknown(n=n)),
        lambda d, n: d.step(failing(n)),
        lambda d, n: d.step(text=TALK),
        lambda d, n: d.step(ROUNDS[n % 2]),
        lambda d, n: d.step(Call("search", {"q": n}, PAGE)),
    ]
    for scenario in scenarios:
        driver = drive(*DEFAULT_DETECTORS)
        fresh = [[v.severity for v in scenario(driver, n)] for n in range(6)]
        driver.turn()
        assert driver.session.state == "closed"
        again = [[v.severity for v in scenario(driver, n)] for n in range(6)]
        assert again == fresh


def test_default_rules_have_families_of_their_own() -> None:
    families = [detector.family for detector in DEFAULT_DETECTORS]
    assert len(set(families)) == len(families)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Repeats(nudge=1), "Repeats.nudge"),
        (lambda: Repeats(nudge=3, block=2), "Repeats.block"),
        (lambda: Repeats(stop=True), "Repeats.stop"),
        (lambda: Repeats(nudge=2.5), "Repeats.nudge"),
        (lambda: Repeats(window=1), "Repeats.window"),
        (lambda: Repeats(patient_seconds=0), "Repeats.patient_seconds"),
        (lambda: Cycles(nudge=0), "Cycles.nudge"),
        (lambda: Cycles(longest=1), "Cycles.longest"),
        (lambda: Cycles(longest=7), "Cycles.longest"),
        (lambda: Cycles(patient_seconds=-1), "Cycles.patient_seconds"),
        (lambda: UnknownTools(stop=1), "UnknownTools.stop"),
        (lambda: UnknownTools(args_nudge=1), "UnknownTools"),
        (lambda: UnknownTools(window=0), "UnknownTools.window"),
        (lambda: Monologues(nudge=1), "Monologues.nudge"),
        (lambda: Monologues(similarity=1.5), "Monologues.similarity"),
        (lambda: Monologues(near_characters=-1), "Monologues.near_characters"),
        (lambda: ErrorStreaks(nudge=1), "ErrorStreaks.nudge"),
        (lambda: ErrorStreaks(nudge=4, block=3), "ErrorStreaks.block"),
        (lambda: Stagnations(nudge=1), "Stagnations.nudge"),
        (lambda: Stagnations(similarity=0), "Stagnations.similarity"),
    ],
)
def test_bad_settings_name_the_field_and_the_fix(build: Callable[[], object], field: str) -> None:
    with pytest.raises(ConfigError, match=field.replace(".", r"\.")) as caught:
        build()
    assert "must" in str(caught.value)
    assert "not " in str(caught.value)


@pytest.mark.parametrize("detector", DEFAULT_DETECTORS, ids=lambda detector: detector.family)
def test_damaged_state_is_refused(detector: object) -> None:
    probe = detector.probe()  # type: ignore[attr-defined]
    if probe.dump() is None:
        return
    for wrong in (None, 5, "x", {}, [[1]], [["a"]], [1, 2, 3, 4, 5, 6, 7, 8, 9]):
        if wrong != {} or not isinstance(probe.dump(), dict):
            with pytest.raises((AssertionError, LookupError, TypeError, ValueError)):
                probe.load(wrong)


def test_halts_and_blocks_name_their_reason() -> None:
    driver = drive(Repeats(nudge=2, block=3, stop=4, error_stop=4))
    verdicts = [v for _ in range(4) for v in driver.step(Call())]
    halt = verdicts[-1]
    assert isinstance(halt, Halt)
    assert halt.reason == "loop:repeat"
    assert driver.session.stopped is halt


def test_an_old_call_that_succeeds_does_not_end_the_streak_of_names() -> None:
    driver = drive(UnknownTools(nudge=3, block=None, stop=None))
    driver.step(Call())
    said = [
        [v.severity for v in [*driver.step(unknown(f"tool{n}")), *driver.step(Call())]]
        for n in range(3)
    ]
    assert first_at(said, NUDGE) == 3
