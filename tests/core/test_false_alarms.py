"""Honest work that looks like a loop, at default settings: nothing is ended, mostly nothing said;
and beside it the loops that look alike, which still end."""

from __future__ import annotations

import json

import pytest

from shearpin.core.tools import effect_of_command
from shearpin.findings import Severity
from tests.core.driving import Call, Driver

NUDGE, BLOCK, STOP = Severity.NUDGE, Severity.BLOCK, Severity.STOP


def strongest(*steps: Call) -> Severity:
    """The strongest verdict that a run of these steps is given at the defaults."""
    driver = Driver()
    given = [verdict.severity for call in steps for verdict in driver.step(call)]
    return max(given, default=Severity.NONE)


def bash(command: str, result: str = "") -> Call:
    return Call("bash", {"command": command}, result)


# -- an edit that says nothing is work ----------------------------------------------------------

EDITS = (
    "sed -i 's/a{n}/b/' app.py",
    "cat > f{n}.py <<'EOF'\nx = {n}\nEOF",
    "git apply p{n}.patch",
    "perl -pi -e 's/a{n}/b/' app.py",
    "python - <<'EOF'\nopen('f.py', 'w').write('{n}')\nEOF",
)


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("silence", ["", "\n", "None", "(no output)"])
def test_a_silent_edit_between_two_test_runs_is_work(edit: str, silence: str) -> None:
    steps = [
        step
        for n in range(10)
        for step in (bash(edit.replace("{n}", str(n)), silence), bash("pytest -q", "1 failed"))
    ]
    assert strongest(*steps) is Severity.NONE


def test_a_silent_command_that_changes_nothing_is_no_work() -> None:
    steps = [step for n in range(10) for step in (bash(f"cat f{n}"), bash("pytest -q", "1 failed"))]
    assert strongest(*steps) is STOP


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("perl -i.bak s/a/b/ f", "write"),
        ("perl -ne print f", "run"),
        ("python3 -c \"from pathlib import Path; Path('f').write_text('x')\"", "write"),
        ("python3 -c \"print(open('w').read())\"", "run"),
        ("python -m pytest -i", "run"),
        ("node -e \"require('fs').writeFileSync('f', 'x')\"", "write"),
    ],
)
def test_what_a_script_does(command: str, effect: str) -> None:
    assert effect_of_command(command) == effect


# -- fields named after errors -------------------------------------------------------------------

CLEAN = (
    {"status": "queued", "error": None},
    {"success": True, "error": None},
    {"error": "", "rows": "{n}"},
    {"error": False, "id": "{n}"},
    {"error": 0, "value": "{n}"},
    {"error": 0.37, "epoch": "{n}"},
    {"jsonrpc": "2.0", "error": None, "result": {"id": "{n}"}},
)


@pytest.mark.parametrize("answer", CLEAN, ids=str)
@pytest.mark.parametrize("written", [json.dumps, str], ids=["json", "repr"])
def test_a_field_for_errors_without_one_is_no_failure(answer: dict, written) -> None:  # type: ignore[no-untyped-def,type-arg]
    texts = [written(answer).replace("{n}", f"r{n}").replace("queued", f"q{n}") for n in range(12)]
    steps = [Call("refund", {"order": f"o{n}"}, text) for n, text in enumerate(texts)]
    assert strongest(*steps) < BLOCK


def test_a_field_for_errors_with_one_is_a_failure() -> None:
    answer = json.dumps({"status": "failed", "error": "the ledger is closed for this customer"})
    assert strongest(*[Call("refund", {"order": f"o{n}"}, answer) for n in range(12)]) is STOP


def test_different_errors_behind_one_interface_stay_different() -> None:
    errors = ("no column a", "table t is locked", "syntax near WHERE", "cannot group by b",
              "ambiguous name c", "division by zero")  # fmt: skip
    steps = [Call("query", {"sql": f"select {n}"}, json.dumps({"error": e}), "error")
             for n, e in enumerate(errors)]  # fmt: skip
    assert strongest(*steps) is Severity.NONE


# -- failures on the way ---------------------------------------------------------------------------


def test_a_failure_of_which_less_is_left_each_time_is_no_loop() -> None:
    left = (913, 702, 561, 400, 212, 120, 40, 9)
    steps = [Call("reconcile", {"batch": n}, f"check failed: {k} mismatches remain", "error")
             for n, k in enumerate(left)]  # fmt: skip
    assert strongest(*steps) is NUDGE


def test_a_failure_of_which_as_much_is_left_is_a_loop() -> None:
    steps = [Call("reconcile", {"batch": n}, "check failed: 913 mismatches remain", "error")
             for n in range(10)]  # fmt: skip
    assert strongest(*steps) is STOP


def test_a_list_gone_through_that_fails_is_given_more_time() -> None:
    pages = [Call("fetch", {"url": f"/old/{n}"}, f"404 Not Found: /old/{n}", "error")
             for n in range(7)]  # fmt: skip
    assert strongest(*pages) is NUDGE


def test_the_same_failing_calls_over_and_over_are_given_less() -> None:
    pages = [Call("fetch", {"url": f"/old/{n % 2}"}, f"404 Not Found: /old/{n % 2}", "error")
             for n in range(7)]  # fmt: skip
    assert strongest(*pages) >= BLOCK


# -- acts with the same answer ---------------------------------------------------------------------

ACTS = (("browser_go_back", "the list of kettles"), ("press_key", "pressed"), ("move", "moved"))


@pytest.mark.parametrize(("act", "answer"), ACTS)
def test_an_act_between_new_sights_is_at_most_remarked_on(act: str, answer: str) -> None:
    steps = [
        step
        for n in range(12)
        for step in (Call(act, {"by": 1}, answer), Call("look", {"at": n}, f"sight {n * 7}"))
    ]
    assert strongest(*steps) is NUDGE


@pytest.mark.parametrize(("act", "answer"), ACTS)
def test_an_act_between_old_sights_is_a_loop(act: str, answer: str) -> None:
    steps = [
        step for _ in range(12) for step in (Call(act, {"by": 1}, answer), Call("look", {}, "wall"))
    ]
    assert strongest(*steps) is STOP


# -- what changes by itself -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "run manual__2025-11-04T10:02:{n}+00:00 failed",
        "see run_2025-11-04T10:02:{n}.log",
        "stamp 20251104T1015{n}",
        "stamp 20251104-1015{n}",
        "application_17622400000{n}_0101 failed",
        "wrote /x/tmpab12c_{n}/out",
    ],
)
def test_stamps_in_names_hide_no_loop(text: str) -> None:
    steps = [Call("trigger", {"dag": "load"}, text.replace("{n}", str(n + 10))) for n in range(12)]
    assert strongest(*steps) is STOP


def test_plain_numbers_in_names_are_kept() -> None:
    steps = [Call("trigger", {"dag": "load"}, f"part_{n} of 12 loaded") for n in range(12)]
    assert strongest(*steps) is Severity.NONE


# -- silence and emptiness ------------------------------------------------------------------------


def test_programs_of_which_nothing_is_known_are_silent_when_they_have_worked() -> None:
    assert strongest(*[bash(f"ffmpeg -i {n}.mov {n}.mp4") for n in range(7)]) is Severity.NONE


def test_a_search_that_counts_nothing_is_empty() -> None:
    answer = '{"expand":"names,schema","total":0,"issues":[]}'
    assert strongest(*[Call("jira_search", {"jql": f"x ~ {n}"}, answer) for n in range(5)]) is NUDGE
