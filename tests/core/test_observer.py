"""From facts to observations: rounds, novelty, work, waiting, and what is counted once."""

from __future__ import annotations

from shearpin.core.observer import Observer
from shearpin.core.seen import RoundSeen, ToolSeen
from shearpin.core.settings import Settings
from shearpin.events import (
    ModelCalled,
    ModelReturned,
    NodeLeft,
    ToolCalled,
    ToolRequest,
    ToolReturned,
)


class Watch:
    """An observer with a clock and ids of its own."""

    def __init__(self) -> None:
        self.observer = Observer(Settings())
        self.ids = 0

    def model(self, *tools: str, agent: str = "main", at: float = 0.0, text: str = "") -> list[str]:
        asked = []
        for tool in tools:
            self.ids += 1
            asked.append(ToolRequest(f"c{self.ids}", tool, {}))
        self.ids += 1
        fact = ModelReturned(at, f"m{self.ids}", agent, text=text, requests=tuple(asked))
        self.seen = self.observer.take_model(fact)
        return [request.id for request in asked]

    def tool(
        self,
        call: str,
        tool: str = "t",
        *,
        result: str = "r",
        status: str = "success",
        **more: object,
    ) -> tuple[ToolSeen, RoundSeen | None]:
        args = more.pop("args", {})
        agent = str(more.pop("agent", "main"))
        at = float(str(more.pop("at", 0.0)))
        fact = ToolReturned(at, call, tool, args, result, status, agent)  # type: ignore[arg-type]
        return self.observer.take_tool(fact)


def test_calls_of_one_response_share_a_round_that_its_last_answer_completes() -> None:
    watch = Watch()
    one, two = watch.model("t", "u")
    seen, whole = watch.tool(one, "t")
    other, complete = watch.tool(two, "u")
    assert seen.round == other.round == 1
    assert whole is None
    assert complete is not None
    assert len(complete.calls) == 2
    (three,) = watch.model("t")
    assert watch.tool(three)[0].round == 2


def test_a_round_is_the_same_whatever_the_order_of_its_answers() -> None:
    symbols = []
    for turned in (False, True):
        watch = Watch()
        ids = watch.model("t", "u", "v")
        calls = list(zip(ids, "tuv", strict=True))
        for call, tool in reversed(calls) if turned else calls:
            _, whole = watch.tool(call, tool, result=f"of {tool}")
        assert whole is not None
        symbols.append(whole.symbol)
    assert symbols[0] == symbols[1]


def test_rounds_with_swapped_results_differ() -> None:
    symbols = []
    for results in ("ab", "ba"):
        watch = Watch()
        one, two = watch.model("t", "u")
        watch.tool(one, "t", result=f"result {results[0]}")
        _, whole = watch.tool(two, "u", result=f"result {results[1]}")
        assert whole is not None
        symbols.append(whole.symbol)
    assert symbols[0] != symbols[1]


def test_a_round_whose_answers_never_came_is_closed_by_the_next() -> None:
    watch = Watch()
    one, _lost = watch.model("t", "u")
    watch.tool(one, "t")
    watch.model("t")
    assert any(isinstance(seen, RoundSeen) for seen in watch.seen)


def test_a_tool_call_without_a_model_opens_its_own_round() -> None:
    watch = Watch()
    _, one = watch.tool("x1")
    _, two = watch.tool("x2")
    assert one is not None
    assert two is not None


def test_novel_and_fresh() -> None:
    watch = Watch()
    first, _ = watch.tool("a", result="r")
    same, _ = watch.tool("b", result="r")
    changed, _ = watch.tool("c", result="s")
    blocked, _ = watch.tool("d", result="", status="blocked")
    assert (first.novel, first.fresh) == (True, True)
    assert (same.novel, same.fresh) == (False, False)
    assert (changed.novel, changed.fresh) == (False, True)
    assert (blocked.novel, blocked.fresh, blocked.result_key) == (False, False, changed.result_key)


def test_only_new_successful_changes_are_work() -> None:
    watch = Watch()
    edit, _ = watch.tool("a", "edit_file", args={"n": 1})
    again, _ = watch.tool("b", "edit_file", args={"n": 1})
    failed, _ = watch.tool("c", "edit_file", args={"n": 2}, result="Error: no such file")
    read, _ = watch.tool("d", "read_file", args={"n": 1})
    assert [seen.work for seen in (edit, again, failed, read)] == [True, False, False, False]
    assert watch.observer.epoch("main") == 1
    assert watch.observer.epoch("another") == 0


def test_thinking_is_not_waiting() -> None:
    watch = Watch()
    watch.observer.thinking(ModelCalled(10.0, "slow"))
    watch.observer.take_model(ModelReturned(70.0, "slow"))
    seen, _ = watch.tool("a", at=75.0)
    assert seen.at == 75.0
    assert seen.idle_at == 15.0


def test_an_id_counts_once() -> None:
    observer = Observer(Settings())
    assert observer.mark("c1")
    assert not observer.mark("c1")
    assert observer.is_done("c1")
    assert not observer.is_done("c2")


def test_a_node_counts_where_it_wrote_something() -> None:
    observer = Observer(Settings())
    assert observer.take_node(NodeLeft(0, "n", "t1", delta=None)) is None
    assert observer.take_node(NodeLeft(0, "n", "t2", delta="d", status="error")) is None
    observer.take_model(ModelReturned(0, "m"))
    seen = observer.take_node(NodeLeft(0, "n", "t3", delta="d"))
    assert seen is not None
    assert seen.paid
    again = observer.take_node(NodeLeft(0, "n", "t4", delta="d"))
    assert again is not None
    assert not again.paid


def test_the_identity_of_a_call_is_kept_until_its_answer() -> None:
    watch = Watch()
    key = watch.observer.key(ToolCalled(0, "c", "t", {"q": 1}))
    seen, _ = watch.tool("c", "t", args={"q": 1})
    assert seen.call_key == key
    assert watch.observer.key(ToolCalled(0, "d", "t", {"q": 1.0})) == key
