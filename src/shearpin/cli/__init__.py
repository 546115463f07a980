"""The command `shearpin`.

Command modules import nothing heavy at the top, so that `shearpin --help` answers at once.
"""

from __future__ import annotations

import click

from shearpin.cli.compare import compare
from shearpin.cli.demo import demo
from shearpin.cli.feedback import feedback
from shearpin.cli.prices import prices
from shearpin.cli.repair import repair
from shearpin.cli.replay import replay
from shearpin.cli.tune import tune
from shearpin.cli.version import version

__all__ = ["main"]

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_HELP)
def main() -> None:
    """Stops runaway loops in LangGraph graphs and LangChain agents.

    \b
    See a runaway agent caught, offline, in seconds:
        shearpin demo
    Ask what the guard would have said about runs that you have recorded:
        shearpin replay runs.jsonl
    Guard a graph of your own, in Python:
        app = shearpin.guard(builder.compile())

    Every command explains itself: shearpin COMMAND --help.
    """


main.add_command(compare)
main.add_command(demo)
main.add_command(feedback)
main.add_command(prices)
main.add_command(repair)
main.add_command(replay)
main.add_command(tune)
main.add_command(version)
