"""Accounts and ledgers together, without a host: who may call, what is charged, what is said."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shearpin.core.account import Account
from shearpin.core.allowance import block_words, halt_words, notice_finding, notice_words
from shearpin.core.books import Book, Exhausted, Notice
from shearpin.core.budget import Budget
from shearpin.core.estimate import Estimate
from shearpin.findings import Severity
from shearpin.ledgers.memory import MemoryLedger
from shearpin.ledgers.purse import Purse
from shearpin.ledgers.requests import Bill, Granted, ModelRequest
from shearpin.testing import ManualClock


class Play:
    """A purse with a clock, and calls that are made and billed in one go."""

    def __init__(self, *budgets: Budget, parent: Play | None = None, name: str = "") -> None:
        self.clock = ManualClock() if parent is None else parent.clock
        books = [Book(b, f"{b.per}:{name}{n}") for n, b in enumerate(budgets) if b.per != "call"]
        for book in books:
            book.watch.start(self.clock())
        per_call = [budget for budget in budgets if budget.per == "call"]
        ledger = MemoryLedger(now=self.clock) if parent is None else parent.purse.ledger
        account = Account(books, per_call, parent.purse.account if parent else None)
        self.purse = Purse(account, ledger, now=self.clock)
        self.notices: list[Notice] = []
        self.number = 0
        self.name = name

    def open(
        self, guess: float = 100.0, out: int = 50, price: int | None = None, **more: object
    ) -> tuple[str, Granted | Exhausted]:
        self.number += 1
        cost = None if price is None else (lambda i, o: price * (i + o))
        request = ModelRequest(f"m{self.name}{self.number}", "main", guess, out, cost=cost)
        return request.id, self.purse.open_model(request._replace(**more))  # type: ignore[arg-type]

    def model(
        self,
        used: tuple[int, int] = (100, 50),
        out: int = 50,
        price: int | None = None,
        **more: object,
    ) -> Granted | Exhausted:
        """A model call whose prompt was guessed exactly."""
        call, found = self.open(float(used[0]), out, price, **more)
        if isinstance(found, Granted):
            usd = (price or 0) * sum(used)
            self.notices += self.purse.close_model(call, Bill(*used, usd))
            self.clock.advance(1.0)
        return found

    def tool(self, name: str = "search", call: str = "", step: int = 0) -> Granted | Exhausted:
        self.number += 1
        found = self.purse.open_tool(f"t{self.name}{self.number}", name, call, "main", step)
        if isinstance(found, Granted):
            self.notices += self.purse.close_tool(f"t{self.name}{self.number}", name)
        return found

    def until_refused(
        self, used: tuple[int, int] = (100, 50), **more: object
    ) -> tuple[int, Exhausted]:
        made = 0
        while True:
            found = self.model(used, **more)  # type: ignore[arg-type]
            if isinstance(found, Exhausted):
                return made, found
            made += 1

    def batch(self, calls: Sequence[str], tool: str = "search") -> list[str]:
        """A parallel batch, started in reverse order; the calls that were run, in message order."""
        self.purse.refresh()
        self.purse.batch([(call, tool) for call in calls])
        run = {call for call in reversed(calls) if isinstance(self.tool(tool, call), Granted)}
        return [call for call in calls if call in run]


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "calls", "reason"),
    [
        (Budget(model_calls=3), 3, "budget:model_calls"),
        (Budget(steps=5), 5, "budget:steps"),
        (Budget(model_calls=0), 0, "budget:model_calls"),
        (Budget(tokens=0), 0, "budget:tokens"),
        (Budget(input_tokens=350), 3, "budget:input_tokens"),
        (Budget(output_tokens=120), 2, "budget:output_tokens"),
        (Budget(seconds=2.5), 3, "budget:seconds"),
        (Budget(seconds=0), 0, "budget:seconds"),
        (Budget(working_seconds=4), 4, "budget:working_seconds"),
        (Budget(tokens=149, per="call"), 0, "budget:tokens"),
    ],
)
def test_n_are_allowed_and_one_more_is_refused(budget: Budget, calls: int, reason: str) -> None:
    made, refused = Play(budget).until_refused()
    assert (made, refused.reason) == (calls, reason)


def test_without_limits_nothing_is_refused() -> None:
    play = Play(Budget())
    assert all(isinstance(play.model(), Granted) for _ in range(50))
    assert all(isinstance(play.tool(), Granted) for _ in range(50))


def test_g12_x_exactly_three_model_calls() -> None:
    """Case G12.x."""
    made, refused = Play(Budget(model_calls=3)).until_refused()
    assert made == 3
    assert (refused.dimension, refused.limit, refused.spent) == ("model_calls", 3, 3)


def test_failed_calls_count_as_calls_and_not_as_steps() -> None:
    play = Play(Budget(model_calls=3, steps=1))
    for _ in range(2):
        call, found = play.open()
        assert isinstance(found, Granted)
        play.purse.close_model(call, Bill(0, 0, steps=0))
    assert isinstance(play.model(), Granted)
    found = play.model()
    assert isinstance(found, Exhausted)
    assert found.reason == "budget:model_calls", "the first in order of what is exhausted"


# -- money and the landing ------------------------------------------------------------------------


def test_ten_cents_and_calls_of_four_and_a_half_are_two_calls() -> None:
    play = Play(Budget(usd="0.10"))
    made, refused = play.until_refused((100, 50), price=300)
    assert made == 2
    assert (refused.reason, refused.spent) == ("budget:usd", 90_000)


def test_one_call_that_is_too_dear_is_refused_with_both_numbers() -> None:
    play = Play(Budget(usd="0.10"))
    _, found = play.open(100.0, 50, price=10_000)
    assert isinstance(found, Exhausted)
    assert (found.wanted, found.limit, found.spent) == (1_500_000, 100_000, 0)
    assert "$0.00 of the $0.10 for this run are used, and the next call could take up to $1.50" in (
        halt_words(found, "en")
    )


def test_eight_branches_hold_only_what_fits() -> None:
    play = Play(Budget(usd="0.10"))
    opened = [play.open(100.0, 50, price=300) for _ in range(8)]
    granted = [call for call, found in opened if isinstance(found, Granted)]
    assert len(granted) == 1, "a second call would leave no room for a last answer while it runs"
    assert all(found.crowded for _, found in opened if isinstance(found, Exhausted))
    play.purse.close_model(granted[0], Bill(100, 50, 45_000))
    found = play.model((100, 50), price=300)
    assert isinstance(found, Granted)
    assert found.landing is not None


def test_the_last_answer_is_always_affordable() -> None:
    """A run that grows by 40 tokens a call and stays within its bounds gets its last answer."""
    play = Play(Budget(usd="1.00"))
    prompt, landings = 100, 0
    while True:
        found = play.model((prompt, 60), out=200, price=100)
        if isinstance(found, Exhausted):
            break
        landings += found.landing is not None
        prompt += 40
    assert landings == 1
    spent = play.purse.ledger.usage("run:0").spent["usd"]
    assert 800_000 <= spent <= 1_000_000


def test_what_still_fits_after_the_landing_may_go_on() -> None:
    play = Play(Budget(tokens=400))
    assert play.model((100, 50)) == Granted(None, Estimate(100, 50, 50))
    for used in ((100, 50), (60, 20), (10, 5)):
        landing = play.model(used, out=used[1])
        assert isinstance(landing, Granted)
        assert landing.landing is not None
    refused = play.model((20, 10), out=10)
    assert isinstance(refused, Exhausted)
    assert (refused.reason, refused.spent) == ("budget:tokens", 395)


def test_one_landing_at_a_time() -> None:
    play = Play(Budget(tokens=400))
    play.model((100, 50))
    assert isinstance(play.open(100.0, 50)[1], Granted)
    assert isinstance(play.open(60.0, 20)[1], Exhausted)


def test_a_child_leaves_the_landing_to_its_parent() -> None:
    parent = Play(Budget(tokens=450))
    assert isinstance(parent.model(), Granted)
    refused = parent.model(last=False)
    while isinstance(refused, Granted):
        refused = parent.model(last=False)
    assert refused.reason == "budget:tokens"
    landing = parent.model()
    assert isinstance(landing, Granted)
    assert landing.landing is not None


def test_without_a_bound_the_landing_keeps_the_whole_worst_case() -> None:
    play = Play(Budget(tokens=10_000))
    assert isinstance(play.model((100, 50), out=4_000, bounded=False), Granted)
    made, refused = play.until_refused((100, 50), out=4_000, bounded=False)
    assert refused.reason == "budget:tokens"
    assert made > 30, "answers are far smaller than their bound, and that is learnt"


# -- scopes ---------------------------------------------------------------------------------------


def test_a_child_charges_its_ancestors_and_the_outermost_is_named() -> None:
    parent = Play(Budget(model_calls=5))
    child = Play(Budget(model_calls=5), parent=parent, name="child")
    assert isinstance(parent.model(), Granted)
    assert child.until_refused()[0] == 4
    found = child.model()
    assert isinstance(found, Exhausted)
    assert found.key == "run:0"
    assert isinstance(parent.model(), Exhausted)


def test_h17_c_five_model_calls_in_the_tree() -> None:
    """Case H17.c."""
    parent = Play(Budget(model_calls=5))
    child = Play(Budget(model_calls=5), parent=parent, name="child")
    made = 0
    for turn in range(20):
        made += isinstance((parent if turn % 2 else child).model(), Granted)
    assert made == 5


def test_h03_b_a_second_child_stops_when_the_tree_is_exhausted() -> None:
    """Case H03.b."""
    tree = Play(Budget(usd="0.50"))
    first = Play(Budget(usd="0.45"), parent=tree, name="first")
    second = Play(Budget(usd="0.45"), parent=tree, name="second")
    assert isinstance(second.model((100, 50), price=300, last=False), Granted)
    first.until_refused((100, 50), price=300, last=False)
    refused = second.model((100, 50), price=300, last=False)
    assert isinstance(refused, Exhausted)
    assert refused.key == "run:0"
    assert second.purse.ledger.usage("run:second0").spent["usd"] == 45_000, "its work is kept"
    assert tree.purse.ledger.usage("run:0").spent["usd"] <= 500_000


def test_h07_a_each_run_starts_at_zero() -> None:
    """Case H07.a."""
    for _ in range(3):
        play = Play(Budget(model_calls=3))
        assert isinstance(play.model(), Granted)
        assert isinstance(play.model(), Granted)


def test_g04_x_a_thread_budget_adds_up_over_runs() -> None:
    """Case G04.x."""
    thread = Play(Budget(model_calls=3, per="thread"))
    first = Play(Budget(model_calls=1), parent=thread, name="first")
    assert first.until_refused()[0] == 1
    second = Play(Budget(model_calls=5), parent=thread, name="second")
    made, refused = second.until_refused()
    assert (made, refused.per) == (2, "thread")


def test_extending_is_for_the_scope_that_is_named() -> None:
    play = Play(Budget(model_calls=1, usd="1"), Budget(model_calls=9, per="thread"))
    assert play.until_refused()[0] == 1
    assert play.purse.extend({"model_calls": 2})
    assert play.until_refused()[0] == 2
    assert play.purse.extend({"tokens": 5}), "what has no limit gets none"
    assert isinstance(play.model(), Exhausted)
    assert not Play(Budget()).purse.extend({"model_calls": 1}, "thread")


# -- tools ----------------------------------------------------------------------------------------


def test_h02_c_the_first_five_of_seven_in_message_order() -> None:
    """Case H02.c."""
    calls = [f"c{number}" for number in range(7)]
    play = Play(Budget(tool_calls=5))
    assert play.batch(calls) == calls[:5]
    assert play.purse.ledger.usage("run:0").spent["tool_calls"] == 5, "skipped calls cost nothing"


def test_h16_a_five_of_six_and_control_returns_to_the_model() -> None:
    """Case H16.a."""
    calls = [f"c{number}" for number in range(6)]
    play = Play(Budget(tool_calls=5))
    assert play.batch(calls) == calls[:5]
    assert isinstance(play.model(), Granted)


def test_a_batch_of_several_tools_fits_each_limit() -> None:
    play = Play(Budget(tool_calls=4, per_tool={"buy": 1}, exempt=("ask_user",)))
    names = ["buy", "buy", "ask_user", "look", "look", "look", "look"]
    play.purse.batch([(f"c{n}", name) for n, name in enumerate(names)])
    run = [n for n, name in enumerate(names) if isinstance(play.tool(name, f"c{n}"), Granted)]
    assert run == [0, 2, 3, 4, 5]


def test_g11_x_entering_a_node_anew_resets_nothing() -> None:
    """Case G11.x."""
    play = Play(Budget(per_tool={"search": 2}))
    found = [play.tool("search") for _ in range(4)]
    assert [isinstance(each, Granted) for each in found] == [True, True, False, False]
    refused = found[2]
    assert isinstance(refused, Exhausted)
    assert refused.reason == "budget:per_tool"
    assert block_words(refused, "en") == (
        "Not run: the limit of 2 calls of `search` for this run is reached. Use another tool, or "
        "answer with what you have and say what is missing."
    )
    assert isinstance(play.tool("other"), Granted)


def test_the_same_call_counts_once() -> None:
    play = Play(Budget(tool_calls=2))
    for _ in range(3):
        assert isinstance(play.purse.open_tool("task:c1", "search"), Granted)
        play.purse.close_tool("task:c1", "search")
    assert isinstance(play.tool(), Granted)
    assert isinstance(play.tool(), Exhausted)


def test_a_call_that_was_dropped_is_charged_when_it_is_made_after_all() -> None:
    play = Play(Budget(tool_calls=1))
    assert isinstance(play.purse.open_tool("task:c1", "search"), Granted)
    play.purse.drop("task:c1")
    assert isinstance(play.purse.open_tool("task:c1", "search"), Granted)
    play.purse.close_tool("task:c1", "search")
    assert isinstance(play.tool(), Exhausted)


def test_exempt_tools_stay_callable_and_are_not_charged() -> None:
    play = Play(Budget(tool_calls=1, exempt=("ask_user",)))
    assert isinstance(play.tool(), Granted)
    assert all(isinstance(play.tool("ask_user"), Granted) for _ in range(5))
    assert isinstance(play.tool(), Exhausted)


def test_a43_x_rounds_in_which_all_was_refused_end_the_run() -> None:
    """Case A43.x."""
    play = Play(Budget(tool_calls=3))
    run = rounds = 0
    for step in range(1, 200):
        found = play.model()
        if isinstance(found, Exhausted):
            assert found.reason == "budget:tool_calls"
            break
        rounds += 1
        run += isinstance(play.tool("run", step=step), Granted)
    assert (run, rounds) == (3, 5)


def test_a_tool_that_still_works_keeps_the_run_going() -> None:
    play = Play(Budget(per_tool={"search": 1}))
    for step in range(1, 12):
        assert isinstance(play.model(), Granted)
        play.tool("search" if step % 2 else "read", step=step)


def test_parallel_tools_never_exceed() -> None:
    play = Play(Budget(tool_calls=7))

    def call(number: int) -> bool:
        found = play.purse.open_tool(f"x{number}", "search")
        if isinstance(found, Exhausted):
            return False
        play.purse.close_tool(f"x{number}", "search")
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(call, range(64))) == 7


# -- what is said ---------------------------------------------------------------------------------


def test_h04_b_exactly_one_soft_warning_and_the_stop_comes_later() -> None:
    """Case H04.b."""
    play = Play(Budget(tokens=100_000, soft=0.8))
    while isinstance(play.model((8_900, 100), out=100), Granted):
        pass
    assert [(n.kind, n.spent) for n in play.notices] == [("soft", 81_000), ("last", 90_000)]
    assert 90_000 <= play.purse.ledger.usage("run:0").spent["tokens"] <= 100_000


def test_h04_a_the_second_call_does_not_fit() -> None:
    """Case H04.a."""
    play = Play(Budget(tokens=100_000))
    assert isinstance(play.model((59_000, 1_000), out=1_000), Granted)
    refused = play.model((59_000, 1_000), out=1_000)
    assert isinstance(refused, Exhausted)
    assert (refused.spent, refused.limit, refused.wanted) == (60_000, 100_000, 60_000)
    assert "60,000 tokens of the 100,000 tokens" in halt_words(refused, "en")


def test_a05_x_the_wrap_up_is_asked_for_at_the_twentieth_call() -> None:
    """Case A05.x."""
    play = Play(Budget(model_calls=25))
    heard: list[tuple[int, str]] = []
    for number in range(1, 30):
        if isinstance(play.model(), Exhausted):
            break
        heard += [(number, notice.kind) for notice in play.notices]
        play.notices.clear()
    assert heard == [(20, "soft"), (24, "last")]


def test_the_nudge_names_numbers_and_the_forecast() -> None:
    play = Play(Budget(tokens=1_000))
    while not play.notices:
        play.model((80, 20), out=20)
    notice, last = play.notices
    assert last.kind == "last", "the next one fits with the notice in its prompt, and no other"
    assert notice.forecast is not None
    assert notice.forecast.step == 10
    text = notice_words(notice, 8, "en")
    assert text.startswith("800 tokens of the 1,000 tokens for this run are used. At this rate it")
    assert "about 2 more steps" in text
    finding = notice_finding(notice, 8, "main")
    assert (finding.family, finding.level, finding.hard) == ("budget", Severity.NUDGE, False)
    assert finding.summary()["forecast_step"] == 10
    assert "800 tokens" in notice_words(notice, 8, "zh")


def test_money_in_findings_is_readable() -> None:
    play = Play(Budget(usd="0.10"))
    play.until_refused((100, 50), price=300)
    (notice,) = play.notices
    assert notice_finding(notice, 2, "main").evidence["spent_usd"] == "$0.09"


# -- open ends ------------------------------------------------------------------------------------


def test_cancelled_and_lost_calls_are_settled_at_what_was_set_aside() -> None:
    play = Play(Budget(tokens=1_000))
    play.open(100.0, 50)
    play.purse.finish()
    tally = play.purse.ledger.usage("run:0")
    assert (tally.spent["tokens"], dict(tally.held)) == (150, {})


def test_a_dropped_call_costs_nothing() -> None:
    play = Play(Budget(model_calls=1))
    for _ in range(5):
        call, found = play.open()
        assert isinstance(found, Granted)
        play.purse.drop(call)
    assert isinstance(play.model(), Granted)


def test_u06_x_what_finished_calls_used_stays_when_one_fails() -> None:
    """Case U06.x."""
    play = Play(Budget(tokens=100_000))
    play.model((700, 50))
    play.model((800, 50))
    call, _ = play.open(900.0, 50)
    play.purse.close_model(call, Bill(0, 0, steps=0))
    assert play.purse.ledger.usage("run:0").spent["tokens"] == 1_600


def test_observed_calls_are_charged_without_a_hold() -> None:
    play = Play(Budget(model_calls=1, tool_calls=1))
    assert isinstance(play.model(), Granted)
    request = ModelRequest("extra", "main", 10.0, 5)
    assert isinstance(play.purse.open_model(request), Exhausted)
    play.purse.force_model(request)
    play.purse.close_model("extra", Bill(10, 5))
    play.purse.force_tool("t")
    play.purse.close_tool("t", "search")
    spent = play.purse.ledger.usage("run:0").spent
    assert (spent["model_calls"], spent["tool_calls"]) == (2, 1)


def test_working_seconds_leave_out_waiting() -> None:
    play = Play(Budget(working_seconds=10, seconds=100))
    watch = play.purse.account.own[0].watch
    play.model()
    watch.wait(play.clock())
    play.clock.advance(60)
    watch.work(play.clock())
    assert play.purse.account.seconds_left(play.clock()) == 9
    assert play.until_refused()[1].reason == "budget:working_seconds"


async def test_the_asynchronous_way_is_the_same() -> None:
    play = Play(Budget(model_calls=1))
    request = ModelRequest("a", "main", 10.0, 5)
    assert isinstance(await play.purse.aopen_model(request), Granted)
    play.purse.close_model("a", Bill(10, 5))
    assert isinstance(await play.purse.aopen_model(request._replace(id="b")), Exhausted)
    tight = Play(Budget(tokens=20))
    found = await tight.purse.aopen_model(request)
    assert isinstance(found, Granted)
    assert found.landing is not None


# -- never more, and not much less ----------------------------------------------------------------

calls = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 40), st.integers(0, 2)), min_size=200, max_size=200
)


@settings(max_examples=100, deadline=None)
@given(calls=calls, cap=st.integers(2_000, 6_000))
def test_bounded_calls_never_overspend_and_use_the_cap(
    calls: list[tuple[int, int, int]], cap: int
) -> None:
    """Up to three calls at a time, prompts guessed up to twice too high, answers up to a bound."""
    play = Play(Budget(tokens=cap))
    spent, under_way = 0, list[tuple[str, int, int]]()
    for into, out, wait in calls:
        call, found = play.open(into * (1.0 + out % 2), 40)
        if isinstance(found, Granted):
            under_way.append((call, into, out))
        elif not found.crowded:
            break
        while len(under_way) > wait:
            done, used_in, used_out = under_way.pop(0)
            spent += used_in + used_out
            # Nothing may be learnt here: prompts of one speaker are not that random.
            play.purse.close_model(done, Bill(used_in, used_out, estimated=True))
    for done, used_in, used_out in under_way:
        spent += used_in + used_out
        play.purse.close_model(done, Bill(used_in, used_out, estimated=True))
    assert spent == play.purse.ledger.usage("run:0").spent["tokens"] <= cap
    assert spent >= 0.8 * cap or spent == sum(a + b for a, b, _ in calls)
