"""Sessions in a store of their own: with and without a checkpointer, through every end of a run."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import shearpin
from shearpin import ConfigError
from shearpin.adapters.langgraph import sessions
from shearpin.adapters.langgraph.sessions import Sessions
from shearpin.adapters.langgraph.state import CHANNEL
from shearpin.errors import StoreError
from shearpin.stores import Entry, MemoryStore, SqliteStore
from shearpin.testing import StrictProvider, asks_for
from tests.adapters.builds import HELLO, THREAD, look, polite, react, runaway, saver


def spend(app: Any, config: Any = THREAD) -> int:
    return app.report(config).to_json()["spend"]["model_calls"]


def held(store: Any) -> dict[str, Any]:
    (key,) = store.keys("session:")
    return json.loads(store.get(key).value)


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_fresh_process_goes_on_where_the_last_one_was(tmp_path: Path, checkpointed: bool) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    checkpointer = saver() if checkpointed else None
    totals: list[int] = []
    for _ in range(3):
        app = shearpin.guard(react(polite(), checkpointer), state=url)
        app.invoke(HELLO, THREAD)
        totals.append(spend(app))
        assert app.report(THREAD).faults == ()
    assert totals == [3, 6, 9]


async def test_the_same_asynchronously_off_the_event_loop(tmp_path: Path) -> None:
    loop_thread = threading.get_ident()
    asked: list[int] = []

    class Watched(SqliteStore):
        def get(self, key: str) -> Entry | None:
            asked.append(threading.get_ident())
            return super().get(key)

        def put(self, *args: Any, **options: Any) -> Entry | None:
            asked.append(threading.get_ident())
            return super().put(*args, **options)

    totals: list[int] = []
    for _ in range(2):
        store = Watched(tmp_path / "sessions.db")
        app = shearpin.guard(react(polite()), state=store, save_every=1)
        await app.ainvoke(HELLO, THREAD)
        totals.append(spend(app))
        store.close()
    assert totals == [3, 6]
    assert len(asked) > 20
    assert loop_thread not in asked


def test_nothing_is_written_to_the_checkpointer() -> None:
    store, checkpointer, plain = MemoryStore(), saver(), saver()
    app = shearpin.guard(react(polite(), checkpointer), state=store, save_every=1)
    app.invoke(HELLO, THREAD)
    react(polite(), plain).invoke(HELLO, THREAD)
    written = [c for w in checkpointer.writes.values() for _, c, _, _ in w.values()]
    assert CHANNEL not in written
    assert len(written) == sum(len(w) for w in plain.writes.values())
    text = json.dumps(held(store))
    assert "room" not in text
    assert "where is it" not in text
    assert len(text) < 4500


def asking(checkpointer: Any) -> Any:
    """Calls the model and a tool, asks a person, and calls the model again."""
    model = StrictProvider(
        [asks_for(("look", {"place": "a"})), asks_for(("look", {"place": "a"})), "end"]
    )

    def node(state: MessagesState) -> dict[str, Any]:
        first = model.invoke(state["messages"])
        seen = [look.invoke(call) for call in first.tool_calls]
        answer = interrupt("go on?")
        last = model.invoke([*state["messages"], first, *seen])
        return {"messages": [AIMessage(f"{answer}: {last.content}")]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=checkpointer)


def test_a_pause_in_one_process_is_resumed_in_another() -> None:
    store = MemoryStore()
    graph = asking(saver())
    first = shearpin.guard(graph, state=store)
    assert "__interrupt__" in first.invoke(HELLO, THREAD)
    assert spend(first) == 1
    second = shearpin.guard(graph, state=store)
    second.invoke(Command(resume="yes"), THREAD)
    assert spend(second) == 2  # the re-executed task is not counted again


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_an_error_is_an_end_too(how: str) -> None:
    store = MemoryStore()

    def script(messages: Any, call: int) -> Any:
        if call == 2:
            raise RuntimeError("no more")
        return asks_for(("look", {"place": f"room {call}"}))

    app = shearpin.guard(react(StrictProvider(script)), state=store)
    with pytest.raises(RuntimeError, match="no more"):
        if how == "invoke":
            app.invoke(HELLO, THREAD)
        else:
            await app.ainvoke(HELLO, THREAD)
    again = shearpin.guard(react(polite()), state=store)
    again.invoke(HELLO, THREAD)
    assert spend(again) == spend(app) + 3


async def test_a_cancelled_run_is_saved_and_nobody_waits_for_it() -> None:
    begun, free = asyncio.Event(), asyncio.Event()
    stored, may_store = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        blocking = True

        def put(self, *args: Any, **options: Any) -> Entry | None:
            assert may_store.wait(20)
            found = super().put(*args, **options)
            stored.set()
            return found

    async def node(state: MessagesState) -> dict[str, Any]:
        answer = await polite().ainvoke(state["messages"])
        begun.set()
        await free.wait()
        return {"messages": [answer]}

    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    store = Slow()
    app: Any = shearpin.guard(builder.compile(), state=store)
    running = asyncio.create_task(app.ainvoke(HELLO, THREAD))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert store.keys() == []
    may_store.set()
    assert await asyncio.to_thread(stored.wait, 20)
    again = shearpin.guard(react(polite()), state=store, name="LangGraph")
    again.invoke(HELLO, THREAD)
    assert spend(again) == 4


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_thread_that_is_gone_from_the_checkpointer_begins_anew(how: str) -> None:
    store, checkpointer = MemoryStore(), saver()

    async def run() -> int:
        app: Any = shearpin.guard(react(polite(), checkpointer), state=store)
        if how == "invoke":
            app.invoke(HELLO, THREAD)
        else:
            await app.ainvoke(HELLO, THREAD)
        return spend(app)

    assert [await run(), await run()] == [3, 6]
    checkpointer.delete_thread("t1")
    assert [await run(), await run()] == [3, 6]


def test_spend_does_not_go_back_with_a_fork() -> None:
    store = MemoryStore()
    app = shearpin.guard(react(polite(), saver()), state=store)
    app.invoke(HELLO, THREAD)
    early = list(app.get_state_history(THREAD))[-2].config
    app.invoke(None, early)
    # Older versions of LangGraph run the first task again under its old id: not counted twice.
    assert spend(app) in (5, 6)


def test_the_newest_number_wins() -> None:
    store = MemoryStore()
    app = shearpin.guard(react(polite()), state=store)
    app.invoke(HELLO, THREAD)
    old = held(store)
    app.invoke(HELLO, THREAD)
    new = held(store)
    assert new["sequence"] > old["sequence"]
    kept = Sessions(store, "LangGraph")
    kept.put("t1", json.dumps(old))
    assert held(store) == new
    kept.put("t1", json.dumps({**old, "sequence": new["sequence"] + 1}))
    assert held(store)["sequence"] == new["sequence"] + 1


def test_another_process_is_heard_of() -> None:
    """Two processes take turns on a thread: each goes on from what the other has counted."""
    store = MemoryStore()
    one, two = (shearpin.guard(react(polite()), state=store) for _ in range(2))
    totals: list[int] = []
    for app in (one, two, two, one):
        app.invoke(HELLO, THREAD)
        totals.append(spend(app))
    assert totals == [3, 6, 9, 12]


def test_a_loop_that_began_in_another_process_is_stopped_on_time() -> None:
    whole, halves = runaway(), runaway()
    shearpin.guard(react(whole, saver())).invoke(HELLO, THREAD)
    store, checkpointer = MemoryStore(), saver()
    given: Any = HELLO
    for _ in range(whole.calls + 1):
        app = shearpin.guard(react(halves, checkpointer), state=store)
        app.invoke(given, THREAD, interrupt_after=["tools"])
        given = None
        if app.report(THREAD).outcome == "stopped":
            break
    assert halves.calls == whole.calls


def test_guards_in_one_store_are_told_apart_by_their_names() -> None:
    store = MemoryStore()
    for name, expected in [("a", 3), ("b", 3), ("a", 6), ("x" * 300, 3), ("x" * 300, 6)]:
        app = shearpin.guard(react(polite()), state=store, name=name)
        app.invoke(HELLO, THREAD)
        assert spend(app) == expected
    long: Any = {"configurable": {"thread_id": "t" * 2000}}
    app.invoke(HELLO, long)
    assert app.report(long).faults == ()
    assert len(store.keys()) == 4


def test_without_a_thread_nothing_is_kept() -> None:
    store = MemoryStore()
    app = shearpin.guard(react(polite()), state=store, save_every=1)
    app.invoke(HELLO)
    assert store.keys() == []


@pytest.mark.parametrize("damage", ["not json", '{"v": 1}', '{"v": 2}'])
def test_a_damaged_entry_is_forgotten(damage: str) -> None:
    store = MemoryStore()
    shearpin.guard(react(polite()), state=store).invoke(HELLO, THREAD)
    (key,) = store.keys()
    store.put(key, damage)
    app = shearpin.guard(react(polite()), state=store)
    app.invoke(HELLO, THREAD)
    assert spend(app) == 3
    assert held(store)["turn"] == 1


class Broken(MemoryStore):
    """Fails at one operation."""

    blocking = True

    def __init__(self, operation: str) -> None:
        super().__init__()
        setattr(self, operation, self.fail)

    def fail(self, *args: Any, **options: Any) -> Any:
        raise StoreError("the disk is gone")


@pytest.mark.parametrize("operation", ["get", "put"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_failing_store_is_contained(operation: str, how: str) -> None:
    app: Any = shearpin.guard(react(polite()), state=Broken(operation), save_every=1)
    if how == "invoke":
        result = app.invoke(HELLO, THREAD)
    else:
        result = await app.ainvoke(HELLO, THREAD)
    assert result["messages"][-1].content == "It is not there."
    faults = str(app.report(THREAD).faults)
    assert "the disk is gone" in faults
    assert faults.count("keeping.save") == 1  # it was left alone after that
    app.invoke(HELLO, THREAD)
    assert spend(app) == 6  # this process remembers


class Stuck(MemoryStore):
    """Answers no more, until it is let go."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def put(self, *args: Any, **options: Any) -> Entry | None:
        self.free.wait(60)
        return super().put(*args, **options)


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_a_stuck_store_holds_nobody_up(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", 0.02)
    store = Stuck()
    made = Sessions.__init__
    monkeypatch.setattr(
        Sessions, "__init__", lambda self, store, name: made(self, store, name, 0.02)
    )
    app: Any = shearpin.guard(react(polite()), state=store, save_every=1)
    try:
        if how == "invoke":
            result = app.invoke(HELLO, THREAD)
        else:
            result = await app.ainvoke(HELLO, THREAD)
    finally:
        store.free.set()
    assert result["messages"][-1].content == "It is not there."
    assert "no answer within 0.02 s" in str(app.report(THREAD).faults)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("sqlite:sessions.db", "three slashes"),
        ("redis://host", "come with the shared ledgers"),
        ("checkpoint", "state must be one of auto, memory, checkpointer, a URL .* did you mean"),
        (7, "state must be one of auto, .* a URL such as"),
        (MemoryStore, "state must be one of auto, .* a URL such as"),
    ],
)
def test_a_wrong_place_is_refused_when_the_guard_is_built(state: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        shearpin.Guard(state=state)


def test_a_file_that_cannot_be_is_refused_when_the_graph_is_guarded(tmp_path: Path) -> None:
    recipe = shearpin.Guard(state=f"sqlite:///{tmp_path}/missing/sessions.db")
    with pytest.raises(StoreError, match=r"no such folder; create .*missing"):
        recipe.wrap(react(polite()))


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(f'state = "sqlite:///{tmp_path}/sessions.db"\nsave_every = 1\n')
    app = shearpin.Guard.from_file(path).wrap(react(polite()))
    app.invoke(HELLO, THREAD)
    assert SqliteStore(tmp_path / "sessions.db").keys() == ["session:LangGraph:t1"]


def test_one_store_for_many_threads_at_once() -> None:
    store = MemoryStore()
    app = shearpin.guard(react(polite()), state=store, save_every=1)

    def run(number: int) -> None:
        for _ in range(2):
            app.invoke(HELLO, {"configurable": {"thread_id": f"t{number}"}})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(16):
        config = {"configurable": {"thread_id": f"t{number}"}}
        assert spend(app, config) == 6
        assert app.report(config).faults == ()
    assert len(store.keys()) == 16


def test_a_guarded_child_of_an_unguarded_parent_is_kept_too() -> None:
    store = MemoryStore()

    def parent() -> Any:
        child = shearpin.guard(react(polite()), state=store)
        builder: StateGraph[Any] = StateGraph(MessagesState)
        builder.add_node("team", child)
        builder.add_edge(START, "team")
        return builder.compile(checkpointer=InMemorySaver())

    parent().invoke(HELLO, THREAD)
    first = held(store)
    parent().invoke(HELLO, THREAD)
    assert held(store)["sequence"] > first["sequence"]
    assert held(store)["turn"] == 2


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("blocking", [False, True])
async def test_saving_before_each_call(how: str, blocking: bool) -> None:
    """What is set aside for a call is in the store before the call is made."""
    store = MemoryStore()
    store.blocking = blocking
    seen: list[int] = []

    def script(messages: Any, call: int) -> Any:
        seen.append(held(store)["sequence"])
        return asks_for(("look", {"place": f"room {call}"})) if call < 3 else "done"

    model = StrictProvider(script)
    app: Any = shearpin.guard(react(model), state=store, save_every="call", budget="9 calls")
    if how == "invoke":
        app.invoke(HELLO, THREAD)
    else:
        await app.ainvoke(HELLO, THREAD)
    assert len(seen) == 3
    assert sorted(set(seen)) == seen
    assert app.report(THREAD).faults == ()


def test_a_cap_that_cannot_be_saved_is_kept_by_ending_the_run() -> None:
    model = polite()
    app = shearpin.guard(react(model), state=Broken("put"), save_every="call", budget="9 calls")
    app.invoke(HELLO, THREAD)
    assert model.calls == 0
    assert app.report(THREAD).outcome == "stopped"
