"""Do words help? A real small model on this machine, with and without the guard's nudges.

    python benchmarks/efficacy.py --seconds 330
    python benchmarks/efficacy.py --write

Every task (a question and a seed) is run four times: bare, with nudges only (`mode="warn"`), with
blocks and stops but no nudge delivered, and with the whole ladder. A task counts only if all four
were run. What happened is read off the runs from outside: a *loop* begins when the same call comes
for the third time with the same result; the run *finishes* if the model gives an answer of its own,
and *pivots* if after the loop has begun it makes a call that it has not made before, or finishes.
`--write` puts the table into RESULTS.md and the numbers into results/efficacy.json.

The model has 135 million parameters: what it does with advice says little about a large one.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

from shearpin import Guard
from shearpin.adapters.run import Run
from shearpin.demo import live
from shearpin.demo.agents import react_agent

HERE = Path(__file__).resolve().parent
MOST_CALLS = 8
SEEDS = (1, 2, 3, 4, 5, 6)
QUESTIONS = {
    "In which year was the bridge of Avenmoor opened?": "1874",
    "How many arches has the bridge of Avenmoor?": "five",
    "On which river does Avenmoor lie?": "tarn",
    "What colour are the arches of the bridge of Avenmoor?": "grey",
}
ARMS = ("bare", "nudges only", "no nudges", "whole ladder")
THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 2 * MOST_CALLS}


@dataclass
class Outcome:
    """What became of one run."""

    finished: bool
    right: bool
    looped: bool
    pivoted: bool
    stopped: bool
    model_calls: int
    tokens: int


class Remembering(live._JsonToolCaller):
    """Asks the model once for each request: arms whose histories are equal get equal answers."""

    _answers: ClassVar[dict[str, ChatResult]] = {}

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> ChatResult:
        plain = [live._plain(message) for message in messages]
        key = json.dumps([self.seed, *((m.type, str(m.content)) for m in plain)])
        if key not in self._answers:
            self._answers[key] = super()._generate(messages, *args, **kwargs)
        return copy.deepcopy(self._answers[key])


def agent(base_url: str, seed: int) -> Any:
    """The demo's agent, with some chance in it."""
    model = Remembering(
        base_url=base_url,
        api_key="none",  # pyright: ignore[reportArgumentType]
        model=live.MODEL_NAME,
        temperature=0.6,
        seed=seed,
        max_completion_tokens=live._ANSWER_TOKENS,
        max_retries=0,
    )
    graph = react_agent(model, [live.search, live.read], live._INSTRUCTIONS, "librarian")
    graph.checkpointer = InMemorySaver()
    return graph


def run(arm: str, base_url: str, question: str, seed: int) -> Outcome:
    """One run of one arm."""
    app = agent(base_url, seed)
    if arm != "bare":
        app = Guard(mode="warn" if arm == "nudges only" else "enforce").wrap(app)
    kept: Callable[..., Any] = Run.take_nudges

    def mute(self: Run, name: str, messages: Any) -> Any:
        return [] if arm == "no nudges" else kept(self, name, messages)

    cut = False
    with patch.object(Run, "take_nudges", mute):
        try:
            app.invoke({"messages": [HumanMessage(question)]}, THREAD)
        except GraphRecursionError:
            cut = True
    messages = app.get_state(THREAD).values["messages"]
    return judged(messages, cut, QUESTIONS[question])


def judged(messages: list[Any], cut: bool, expected: str) -> Outcome:
    """Reads off the messages what happened."""
    stopped = "shearpin" in messages[-1].response_metadata
    finished = not cut and not stopped
    seen: Counter[tuple[str, str, str]] = Counter()
    made: set[tuple[str, str]] = set()
    looped = pivoted = False
    results = {m.tool_call_id: str(m.content) for m in messages if m.type == "tool"}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            key = (call["name"], str(call["args"]))
            pivoted = pivoted or (looped and key not in made)
            made.add(key)
            seen[(*key, results.get(call["id"], ""))] += 1
            looped = looped or max(seen.values()) >= 3
    spoken = [m for m in messages if isinstance(m, AIMessage) and m.usage_metadata]
    return Outcome(
        finished=finished,
        right=finished and expected in str(messages[-1].content).lower(),
        looped=looped,
        pivoted=pivoted or (looped and finished),
        stopped=stopped,
        model_calls=len(spoken),
        tokens=sum(m.usage_metadata["total_tokens"] for m in spoken),
    )


def tasks() -> Iterator[tuple[str, int]]:
    """All questions with the first seed, then with the next one."""
    return ((question, seed) for seed in SEEDS for question in QUESTIONS)


def table(outcomes: dict[str, list[Outcome]]) -> str:
    """The outcomes as a Markdown table."""
    rows = [
        (
            "| | runs | finish | right answer | get into a loop | of these pivot or finish "
            "| stopped | model calls | tokens |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for arm in ARMS:
        done = outcomes[arm]
        loops = [outcome for outcome in done if outcome.looped]
        rows.append(
            f"| {arm} | {len(done)} | {sum(o.finished for o in done)} "
            f"| {sum(o.right for o in done)} | {len(loops)} | {sum(o.pivoted for o in loops)} "
            f"| {sum(o.stopped for o in done)} | {sum(o.model_calls for o in done)} "
            f"| {sum(o.tokens for o in done):,} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=330, help="start no task after this")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the JSON")
    options = parser.parse_args()
    outcomes: dict[str, list[Outcome]] = {arm: [] for arm in ARMS}
    started = time.monotonic()
    with live.serving(live.model_file()) as base_url:
        for question, seed in tasks():
            if time.monotonic() - started > options.seconds:
                break
            for arm in ARMS:
                outcomes[arm].append(run(arm, base_url, question, seed))
            print(f"{len(outcomes['bare'])} tasks, {time.monotonic() - started:.0f} s", flush=True)
    text = table(outcomes)
    print(text)
    if options.write:
        data = {arm: [asdict(outcome) for outcome in done] for arm, done in outcomes.items()}
        (HERE / "results" / "efficacy.json").write_text(json.dumps(data, indent=1) + "\n")
        write(text)


def write(text: str) -> None:
    """Replace this benchmark's section of RESULTS.md."""
    path = HERE / "RESULTS.md"
    title = "\n## Do nudges help a small model?"
    before, _, mine = path.read_text().partition(title)
    after = mine[mine.find("\n## ") :] if "\n## " in mine else ""
    told = f"""

`python benchmarks/efficacy.py --write`: {live.MODEL_NAME} on this machine, temperature 0.6, seeded;
questions about two short documents, at most {MOST_CALLS} model calls. Each task was run in all four
ways, and equal requests of a task got equal answers, so that the arms differ by what the guard did
alone. A loop: the same call for the third time with the same result. To pivot: a call not made
before, after that. "No nudges" has blocks and stops, and no hint is delivered.

{text}

The model has 135 million parameters and follows few instructions; the numbers are small. They say
what the guard costs and saves on a genuine runaway agent, not how well advice works on a large one.
"""
    path.write_text(before.rstrip() + "\n" + title + told + after)


if __name__ == "__main__":
    main()
