"""chanting: prose that repeats itself in a stream, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import shearpin
from shearpin import Budget
from shearpin.core.chanting import Chant, Chants
from shearpin.core.detectors import DEFAULT_DETECTORS
from shearpin.errors import ConfigError
from shearpin.testing import StrictProvider
from tests.adapters.builds import react_builder

BLOCK = "Wait, I must look at the file again to be quite sure. "


def chants(text: str, size: int = 7, **more: Any) -> list[Chant]:
    probe = Chants(**more).probe()
    found = (probe.feed(text[at : at + size]) for at in range(0, len(text), size))
    return [chant for chant in found if chant]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize(
    "block", [BLOCK, "我需要再看一遍这个文件，确认它是否正确。还是再看一次吧。"]
)
def test_a_block_over_and_over_is_found(block: str, size: int) -> None:
    (first, *_) = chants("I begin with something else. " + block * 40, size)
    assert first.period == len(block)
    assert first.laps >= 5
    assert abs(first.onset - 29) <= 4


def test_it_is_found_early() -> None:
    probe = Chants().probe()
    fed = 0
    while probe.feed(BLOCK[:27]) is None and probe.feed(BLOCK[27:]) is None:
        fed += len(BLOCK)
        assert fed < 1000


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Step {n}: I look at file {n} and then I report. " for n in range(99)),
        "| a name | a value |\n" * 99,
        "----------------------------------------\n" * 99,
        "= * = * = * = * = * = * = * = * = *\n" * 99,
        "```\n" + "print('the same line of a program')\n" * 99 + "```\n",
        BLOCK * 4,
        "col\tcol\tcol\tcol\n" * 99,
        "",
    ],
)
def test_lists_tables_dividers_and_code_are_left_alone(text: str) -> None:
    assert not chants(text)


def test_prose_after_a_code_block_counts_again() -> None:
    assert chants("```\nx = 1\n```\n" + BLOCK * 40)


def test_memory_stays_bounded() -> None:
    probe = Chants().probe()
    for n in range(2000):
        probe.feed(f"sentence number {n} of a very long answer. ")
    assert len(probe._text) <= 6000


@pytest.mark.parametrize(
    "wrong", [{"laps": 2}, {"least_characters": 10}, {"longest_block": 0}, {"letters": 2}]
)
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Chants(**wrong)


# -- in a run --------------------------------------------------------------------------------------

OPENING = "The file is here, and I have read it. "
LAP = "Wait, I must look at the file again to be sure that it is right. "
CHANT = OPENING + LAP * 60
TABLE = "| name | value |\n|---|---|\n" + "| the same row | of the table |\n" * 60
ASKED: Any = {"messages": [("user", "look")]}


def agent(*answers: str, **options: Any) -> tuple[Any, StrictProvider]:
    model = StrictProvider(list(answers))
    return shearpin.guard(react_builder(model, [look]).compile(), **options), model


def cutting(**options: int) -> tuple[Any, ...]:
    return (*DEFAULT_DETECTORS, Chants(**options))


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return "locked"


def streamed(app: Any) -> str:
    parts = app.stream(ASKED, stream_mode="messages")
    return "".join(part.content for part, about in parts if about.get("langgraph_node") == "agent")


def check_cut(app: Any, shown: str) -> None:
    report = app.report()
    assert (report.outcome, report.reason) == ("stopped", "loop:chanting")
    assert OPENING + LAP in shown and len(shown) < len(CHANT) / 2
    decisive = report.decisive
    assert decisive.rule == "chanting" and decisive.evidence["period"] == len(LAP)
    assert "Chants(laps=...)" in report.remedy
    assert not report.faults


def test_a_stream_that_chants_is_cut_and_the_run_ends() -> None:
    app, model = agent(CHANT, "never asked", detectors=cutting())
    check_cut(app, streamed(app))
    assert model.calls == 1


async def test_a_stream_that_chants_is_cut_on_an_event_loop_too() -> None:
    app, _ = agent(CHANT, detectors=cutting())
    parts = [part async for part, _ in app.astream(ASKED, stream_mode="messages")]
    check_cut(app, "".join(part.content for part in parts))


def test_what_was_said_before_it_stands_in_the_last_word() -> None:
    app, _ = agent(CHANT, detectors=cutting())
    last: Any = None
    for part in app.stream(ASKED, stream_mode=["messages", "values"]):
        mode, value = part
        last = value if mode == "values" else last
    words = last["messages"][-1].content
    assert words.startswith(OPENING + LAP[:-4]) and words.count("Wait") == 1
    assert "was cut there" in words


def test_the_cut_answer_is_settled_in_the_budget() -> None:
    app, _ = agent(CHANT, detectors=cutting(), budget=Budget(tokens=100_000))
    streamed(app)
    (scope,) = app.report().budget.scopes
    spent = scope.spent["input_tokens"] + scope.spent["output_tokens"]
    assert spent > 0 and not any(scope.held.values())
    assert app.report().reason == "loop:chanting"


@pytest.mark.parametrize("text", [TABLE, f"```\n{LAP * 60}\n```", "-" * 4000, "All is well. " * 9])
def test_what_repeats_by_nature_is_left_alone(text: str) -> None:
    app, _ = agent(text, detectors=cutting())
    assert streamed(app) == text
    assert app.report().outcome == "completed" and not app.report().verdicts


def test_it_is_off_by_default_and_only_notes_where_nothing_is_enforced() -> None:
    plain, _ = agent(CHANT)
    assert streamed(plain) == CHANT and not plain.report().verdicts
    watched, _ = agent(CHANT, detectors=cutting(), mode="observe")
    assert streamed(watched) == CHANT
    (record,) = watched.report().verdicts
    assert record.rule == "chanting" and not record.acted
    assert watched.report().outcome == "completed"


def test_the_next_turn_is_answered() -> None:
    model = StrictProvider([CHANT, "Here it is."])
    graph = react_builder(model, [look]).compile(checkpointer=InMemorySaver())
    app = shearpin.guard(graph, detectors=cutting())
    config: Any = {"configurable": {"thread_id": "t"}}
    for _ in app.stream(ASKED, config, stream_mode="messages"):
        pass
    assert app.report(config).reason == "loop:chanting"
    told = app.invoke({"messages": [("user", "and now?")]}, config)
    assert told["messages"][-1].content == "Here it is."


def test_a_plain_chain_is_cut_too() -> None:
    model = StrictProvider([CHANT])
    shown = ""
    with shearpin.Guard(detectors=cutting()).run() as run:
        for chunk in model.stream([("user", "look")]):
            shown += str(chunk.content)
    assert run.stopped is not None and run.stopped.reason == "loop:chanting"
    assert len(shown) < len(CHANT) / 2


def test_it_may_be_asked_for_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text("[detectors.chanting]\nlaps = 8\n")
    assert shearpin.Guard.from_file(path).detectors[-1] == Chants(laps=8)
