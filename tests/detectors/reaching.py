"""Runs at default settings: one that reaches each rule, one that is like it and legitimate."""

from __future__ import annotations

from collections.abc import Callable

from shearpin.events import ModelCalled, ModelReturned, NodeLeft, Usage
from shearpin.verdicts import Verdict
from tests.core.driving import Call, Driver, finding_of

FILE = "```python\n" + "print('a line of a program')\n" * 20 + "```"
REMARKS = (
    "The loop at the top never ends; please bound it.",
    "Where is the score kept? I cannot find it.",
    "Exceptions are swallowed in the reader.",
    "Names do not follow the guide at all.",
    "A test for the empty case is missing here.",
    "Colours are hard-coded, move them out.",
    "The window cannot be resized by users.",
    "Startup takes too long, load lazily instead.",
)
PAGE = "The page shows a form with a title, two links and a long text about walking shoes. " * 3


def rules(verdicts: list[Verdict]) -> set[str]:
    return {finding_of(verdict).rule for verdict in verdicts}


Script = Callable[[Driver], list[Verdict]]


def _all(steps: list[list[Verdict]]) -> list[Verdict]:
    return [verdict for step in steps for verdict in step]


# -- echo -----------------------------------------------------------------------------------------


def echo_of_a_file(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for number in range(4):
        out.append(driver.step(text=REMARKS[number], agent="reviewer"))
        out.append(driver.step(text=FILE, agent="programmer"))
    return _all(out)


def file_that_changes(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for number in range(8):
        out.append(driver.step(text=REMARKS[number], agent="reviewer"))
        out.append(driver.step(text=f"{FILE}\n# {REMARKS[number]}", agent="programmer"))
    return _all(out)


def echo_of_a_form_letter(driver: Driver) -> list[Verdict]:
    letter = "There is no code in the last message for me to run; let somebody else go on."
    out: list[list[Verdict]] = []
    for number in range(3):
        out.append(driver.step(text=REMARKS[number], agent="a"))
        out.append(driver.step(text=letter, agent="terminal"))
    return _all(out)


# -- litany ---------------------------------------------------------------------------------------


def edits_with_the_same_words(driver: Driver) -> list[Verdict]:
    return _all(
        [
            driver.step(
                Call("edit_file", {"path": "a.py", "new": f"x = {n}  # {n}"}, "edited"),
                text="I need to fix the indentation of the function.",
            )
            for n in range(6)
        ]
    )


def edits_with_a_plan(driver: Driver) -> list[Verdict]:
    return _all(
        [
            driver.step(
                Call("edit_file", {"path": f"{n}.py", "new": "x"}, "edited"),
                text=f"Now the same in file {n} of 9.",
            )
            for n in range(9)
        ]
    )


# -- insistence -----------------------------------------------------------------------------------


def the_same_link(driver: Driver) -> list[Verdict]:
    marks = ["", " ok", "", " now", " ok ok"]
    return _all(
        [
            driver.step(Call("click", {"link": "Forum"}, f"{PAGE} visit {n}{marks[n % 5]}"))
            for n in range(5)
        ]
    )


def scrolling_a_long_page(driver: Driver) -> list[Verdict]:
    marks = ["", " ok", "", " now", " ok ok"]
    return _all(
        [
            driver.step(Call("scroll_down", {}, f"{PAGE} position {n}{marks[n % 5]}"))
            for n in range(5)
        ]
    )


def the_next_page(driver: Driver) -> list[Verdict]:
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
    return _all(
        [
            driver.step(
                Call("click", {"link": "Next"}, " ".join(f"{word}{n} {n}" for word in words) * 3)
            )
            for n in range(9)
        ]
    )


# -- revisits -------------------------------------------------------------------------------------


def round_and_round(driver: Driver) -> list[Verdict]:
    listing = Call("list_dir", {"path": "."}, "a.py\nb.py")
    source = Call("read_file", {"path": "a.py"}, "print('hello world')")
    trial = Call("bash", {"command": "python a.py"}, "SyntaxError: invalid syntax")
    other = Call("read_file", {"path": "b.py"}, "import a")
    return _all([driver.step(call) for call in (listing, source, trial, listing, other)]) + _all(
        [driver.step(call) for call in (source, trial)]
    )


def check_before_handing_over(driver: Driver) -> list[Verdict]:
    listing = Call("list_dir", {"path": "."}, "a.py\nb.py")
    source = Call("read_file", {"path": "a.py"}, "print('hello world')")
    trial = Call("bash", {"command": "python a.py"}, "hello world")
    return _all([driver.step(call) for call in (listing, source, trial) * 2])


# -- guesses --------------------------------------------------------------------------------------


def flag_after_flag(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for n in range(5):
        out.append(
            driver.step(Call("submit_flag", {"flag": f"f{n}"}, "That flag is incorrect. Try again"))
        )
        out.append(driver.step(Call("read_mail", {"number": n}, f"mail number {n}: nothing here")))
    return _all(out)


def seat_after_seat(driver: Driver) -> list[Verdict]:
    return _all(
        [
            driver.step(Call("reserve_seat", {"seat": f"A{n}"}, "reserved for you, thank you"))
            for n in range(12)
        ]
    )


# -- ping_pong ------------------------------------------------------------------------------------


def nobody_works(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for n in range(4):
        out.append(
            driver.step(Call("transfer_to_b", {"task": f"reason {n}"}, "transferred"), agent="a")
        )
        out.append(
            driver.step(Call("transfer_to_a", {"task": f"no, {n}"}, "transferred"), agent="b")
        )
    return _all(out)


def each_visit_works(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for n in range(8):
        out.append(driver.step(Call("transfer_to_b", {"task": f"{n}"}, "transferred"), agent="a"))
        out.append(driver.step(Call("read_file", {"path": f"{n}"}, f"content {n}"), agent="b"))
        out.append(driver.step(Call("transfer_to_a", {"task": f"{n}"}, "transferred"), agent="b"))
    return _all(out)


# -- state_oscillation ----------------------------------------------------------------------------


def undone_again_and_again(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for n in range(4):
        out.append(driver.step(Call("edit_file", {"path": "a.py", "new": f"try {n}"}, "edited")))
        out.append(driver.step(Call("bash", {"command": f"pytest -k case_{n}"}, f"{n} failed")))
        out.append(driver.step(Call("bash", {"command": "git checkout a.py"}, "1 path updated")))
    return _all(out)


def started_again_once(driver: Driver) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for n in range(2):
        out.append(driver.step(Call("edit_file", {"path": "a.py", "new": f"try {n}"}, "edited")))
        out.append(driver.step(Call("bash", {"command": "git checkout a.py"}, "1 path updated")))
    return _all(out)


def writes(driver: Driver, deltas: str) -> list[Verdict]:
    out: list[Verdict] = []
    for place, delta in enumerate(deltas):
        driver.at += 1
        call = f"n{place}"
        node = "plan" if delta in "adfh" else "check"
        driver.session.before(ModelCalled(driver.at, call, "main", node))
        driver.session.after(
            ModelReturned(driver.at, call, "main", node, f"{REMARKS[place % 8]} {delta}")
        )
        out.append(driver.session.after(NodeLeft(driver.at, node, f"t{place}", delta=delta)))
    return [verdict for verdict in out if verdict.severity]


def states_that_return(driver: Driver) -> list[Verdict]:
    return writes(driver, "abcabacbcaabcbac")


def answers_of_a_fan_out(driver: Driver) -> list[Verdict]:
    return writes(driver, "bcbbcbccbcbcc")


def states_that_are_new(driver: Driver) -> list[Verdict]:
    return writes(driver, "abcaddefafghaijkalm")


# -- dead_end_drift -------------------------------------------------------------------------------


def nothing_new(driver: Driver) -> list[Verdict]:
    lines = [
        f"src/part_{n}.py: a definition of its own kind, and of no other one" for n in range(6)
    ]
    out = [driver.step(Call("list_dir", {"path": "."}, "\n".join(lines)))]
    for n in range(9):
        found = "\n".join(line for place, line in enumerate(lines) if (n + 3) >> (place % 4) & 1)
        out.append(driver.step(Call("grep", {"pattern": f"p{n}"}, found)))
    return _all(out)


def something_new_each_time(driver: Driver) -> list[Verdict]:
    same = "src/main.py: the one that is always found"
    return _all(
        [
            driver.step(Call("grep", {"pattern": f"p{n}"}, f"{same}\nsrc/{REMARKS[n % 8]}{n}"))
            for n in range(20)
        ]
    )


# -- paging ---------------------------------------------------------------------------------------


def windows_backwards(driver: Driver) -> list[Verdict]:
    return _all(
        [
            driver.step(
                Call(
                    "bash",
                    {"command": f"sed -n '{900 - 10 * n},{910 - 10 * n}p' big.py"},
                    f"line {900 - 10 * n} of the file and the words {n * 7} {n * 13}",
                )
            )
            for n in range(14)
        ]
    )


def windows_forwards(driver: Driver) -> list[Verdict]:
    return _all(
        [
            driver.step(
                Call(
                    "read_file",
                    {"path": "big.py", "view": [10 * n, 10 * n + 9]},
                    f"line {10 * n} of the file and the words {n * 7} {n * 13}",
                )
            )
            for n in range(60)
        ]
    )


# -- velocity -------------------------------------------------------------------------------------


def _paced(driver: Driver, sizes: list[tuple[int, float]]) -> list[Verdict]:
    out: list[list[Verdict]] = []
    for number, (tokens, seconds) in enumerate(sizes):
        driver.seconds = seconds
        call = Call("read_chapter", {"no": number}, f"chapter {number}: {number * 77 + 4000} words")
        out.append(driver.step(call, usage=Usage(tokens, 40)))
    return _all(out)


def a_hundredfold_and_faster(driver: Driver) -> list[Verdict]:
    return _paced(driver, [(2000, 15.0)] * 8 + [(210_000 + 9000 * n, 1.0) for n in range(6)])


def twelvefold_growth(driver: Driver) -> list[Verdict]:
    return _paced(driver, [(2500 + 700 * n, 9.0 - n * 0.1) for n in range(40)])


REACHED: dict[str, list[tuple[str, Script]]] = {
    "echo": [("echo", echo_of_a_file), ("echo", echo_of_a_form_letter)],
    "litany": [("litany", edits_with_the_same_words)],
    "insistence": [("insistence", the_same_link)],
    "revisits": [("revisits", round_and_round)],
    "guesses": [("rejected_guesses", flag_after_flag)],
    "ping_pong": [("ping_pong", nobody_works)],
    "state_oscillation": [
        ("undone", undone_again_and_again),
        ("state_oscillation", states_that_return),
    ],
    "dead_end_drift": [("dead_end_drift", nothing_new)],
    "paging": [("paging", windows_backwards)],
    "velocity": [("velocity", a_hundredfold_and_faster)],
}
QUIET: dict[str, list[Script]] = {
    "echo": [file_that_changes],
    "litany": [edits_with_a_plan],
    "insistence": [the_next_page, scrolling_a_long_page],
    "revisits": [check_before_handing_over],
    "guesses": [seat_after_seat],
    "ping_pong": [each_visit_works],
    "state_oscillation": [
        started_again_once,
        states_that_are_new,
        answers_of_a_fan_out,
    ],
    "dead_end_drift": [something_new_each_time],
    "paging": [windows_forwards],
    "velocity": [twelvefold_growth],
}
