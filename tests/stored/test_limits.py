"""What cannot be opened or mended: named, with what to do; and any history at all, by chance."""

from __future__ import annotations

import builtins
import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from shearpin.adapters.langgraph.stored import postgres, raw
from shearpin.adapters.langgraph.stored.mending import look_through, mend_stored
from shearpin.adapters.langgraph.stored.sqlite import SqliteThreads
from shearpin.cli import main
from shearpin.errors import StoreError
from shearpin.testing.provider import complaints
from tests.stored.places import SqlitePlace

THREAD: Any = {"configurable": {"thread_id": "t"}}


def repair(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["repair", *arguments], catch_exceptions=False)


def graph(saver: Any) -> Any:
    builder: StateGraph[Any] = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [AIMessage("fine")]})
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def asks(*ids: str) -> AIMessage:
    return AIMessage(
        "", tool_calls=[ToolCall(name="pay", args={}, id=i, type="tool_call") for i in ids]
    )


def broken(folder: Path, messages: list[Any] | None = None) -> SqlitePlace:
    """A file with a thread in it that is broken."""
    place = SqlitePlace(folder)
    given = messages or [HumanMessage("hello"), asks("a"), HumanMessage("well?")]
    with place.saver() as saver:
        graph(saver).update_state(THREAD, {"messages": given}, as_node="agent")
    return place


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("missing.db", "missing.db: there is no such file; name the checkpointer's database"),
        ("sqlite:///missing.db", "missing.db: there is no such file"),
        (".", "there is no such file"),
        ("notes.txt", "notes.txt: is not an SQLite database"),
        ("empty.db", "empty.db: holds no LangGraph checkpoints"),
        ("mysql://host/db", "mysql://... is not known; name an SQLite file"),
        ("sqlite://file.db", "three slashes"),
    ],
)
def test_a_place_that_cannot_be_is_named(
    place: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("not a database " * 100)
    sqlite3.connect("empty.db").close()
    result = repair(place)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir()) == ["empty.db", "notes.txt"]  # noqa: PTH208


def test_a_url_with_three_slashes_is_a_file(tmp_path: Path) -> None:
    place = broken(tmp_path)
    assert repair(f"sqlite:///{place.path}", "--dry-run").exit_code == 1
    assert repair(f"sqlite:///{place.path}").exit_code == 0


def test_postgres_without_its_packages_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(postgres, "import_module", missing)
    result = repair("postgresql://user:secret@localhost/db")
    assert result.exit_code == 2
    assert 'pip install langgraph-checkpoint-postgres "psycopg[binary]"' in result.stderr


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    pytest.importorskip("langgraph.checkpoint.postgres", exc_type=ImportError)
    result = repair("postgresql://user:secret@127.0.0.1:1/db")
    assert result.exit_code == 2
    assert "postgresql://127.0.0.1:1/db: cannot be reached; check host" in result.stderr
    assert "secret" not in result.stderr


def test_sqlite_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "langgraph.checkpoint.sqlite":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    result = repair("checkpoints.db")
    assert result.exit_code == 2
    assert "pip install langgraph-checkpoint-sqlite" in result.stderr


def test_a_dry_run_does_not_even_open_the_file_for_writing(tmp_path: Path) -> None:
    place = broken(tmp_path)
    before = place.path.read_bytes()
    assert repair(place.url, "--dry-run").exit_code == 1
    assert place.path.read_bytes() == before
    threads = SqliteThreads(place.path, reads_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        threads._db.execute("DELETE FROM checkpoints")
    threads.close()


def test_a_locked_file_is_named(tmp_path: Path) -> None:
    place = broken(tmp_path)
    threads = SqliteThreads(place.path, reads_only=False)
    threads._db.execute("PRAGMA busy_timeout=0")
    other = sqlite3.connect(place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ((found, stored),) = look_through(threads, threads.heads([]))
    assert stored is not None
    with pytest.raises(StoreError, match="is locked by another process"):
        mend_stored(threads, found, stored)
    other.execute("ROLLBACK")
    mend_stored(threads, found, stored)
    assert found.left is None
    other.close()
    threads.close()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE checkpoints SET type = 'msgpack+aes'", "stored as 'msgpack+aes'"),
        ("UPDATE checkpoints SET checkpoint_id = 'f' || checkpoint_id", "dated in the future"),
        ("UPDATE checkpoints SET checkpoint = X'c1'", "it cannot be read"),
        ("UPDATE checkpoints SET checkpoint = X'80'", "it cannot be read: KeyError"),
        ("UPDATE checkpoints SET metadata = 'no json'", "it cannot be read: JSONDecodeError"),
        (
            "UPDATE checkpoints SET metadata = '{\"counters_since_delta_snapshot\": {}}'",
            "DeltaChannel",
        ),
    ],
)
def test_what_cannot_be_mended_is_left_with_the_reason(
    statement: str, reason: str, tmp_path: Path
) -> None:
    place = broken(tmp_path)
    db = sqlite3.connect(place.path)
    db.execute(statement)
    db.commit()
    db.close()
    before = place.rows()
    result = repair(place.url, "--json")
    assert result.exit_code == 1
    assert reason in result.stdout
    assert place.rows() == before


def test_a_thread_that_has_gone_on_meanwhile_is_left(tmp_path: Path) -> None:
    place = broken(tmp_path)
    threads = SqliteThreads(place.path, reads_only=False)
    ((found, stored),) = look_through(threads, threads.heads([]))
    assert stored is not None
    with place.saver() as saver:
        graph(saver).invoke({"messages": [HumanMessage("again")]}, THREAD)
    before = place.rows()
    mend_stored(threads, found, stored)
    assert found.left == "it has gone on meanwhile; run this again"
    assert place.rows() == before
    threads.close()
    assert repair(place.url).exit_code == 0


def test_what_was_not_written_as_meant_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = broken(tmp_path)
    threads = SqliteThreads(place.path, reads_only=False)
    ((found, stored),) = look_through(threads, threads.heads([]))
    assert stored is not None
    plain = raw.Exact.dumps_typed

    def spoilt(self: raw.Exact, value: Any) -> Any:
        values = dict(value["channel_values"])
        values["messages"] = values["messages"][:-1]
        return plain(self, {**value, "channel_values": values})

    monkeypatch.setattr(raw.Exact, "dumps_typed", spoilt)
    with pytest.raises(StoreError, match="what was written is not what was meant"):
        mend_stored(threads, found, stored)
    threads.close()


def test_other_things_than_messages_are_left_alone(tmp_path: Path) -> None:
    place = SqlitePlace(tmp_path)
    builder: Any = StateGraph(dict)
    builder.add_node("node", lambda state: {"messages": ["hello", 7]})
    builder.add_edge(START, "node")
    with place.saver() as saver:
        builder.compile(checkpointer=saver).invoke({}, THREAD)
    assert repair(place.url).exit_code == 0


def test_help_and_wrong_usage() -> None:
    shown = repair("--help")
    assert shown.exit_code == 0
    assert "shearpin repair checkpoints.db --dry-run" in shown.stdout
    assert "Exit codes" in shown.stdout
    assert repair().exit_code == 2
    assert repair("x.db", "--threads", "t").exit_code == 2


IDS = "abcd"
message = st.one_of(
    st.builds(HumanMessage, st.just("hello")),
    st.lists(st.sampled_from(IDS), max_size=3, unique=True).map(lambda ids: asks(*ids)),
    st.sampled_from(IDS).map(lambda i: ToolMessage(f"done {i}", tool_call_id=i)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(message, min_size=1, max_size=10))
def test_any_history_can_be_mended(history: list[Any]) -> None:
    """With the user's next word after it, no provider complains; and once is enough."""
    # A message of the model with neither text nor calls is no matter of answers.
    blank = [isinstance(m, AIMessage) and not m.tool_calls for m in history]
    given = [AIMessage("hm") if empty else m for m, empty in zip(history, blank, strict=True)]
    with TemporaryDirectory() as folder:
        place = broken(Path(folder), [HumanMessage("hello"), *given])
        result = repair(place.url, "--give-up")
        assert result.exit_code == 0, result.stderr
        before = place.rows()
        assert repair(place.url, "--give-up").exit_code == 0
        assert place.rows() == before
        with SqliteSaver.from_conn_string(place.url) as saver:
            held = graph(saver).get_state(THREAD).values["messages"]
    # A call's id that a model uses again is its own: nothing is renamed.
    left = [it for it in complaints([*held, HumanMessage("next")]) if "not unique" not in it]
    assert left == []
    kept = [m.id for m in held if not isinstance(m, ToolMessage)]
    assert len(kept) == 1 + sum(not isinstance(m, ToolMessage) for m in given)
