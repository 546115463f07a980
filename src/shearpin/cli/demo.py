"""`shearpin demo`: a runaway agent, bare and guarded."""

from __future__ import annotations

import click

__all__ = ["demo"]


@click.command(short_help="Watch a runaway agent being caught, bare and guarded side by side.")
@click.option("--live", is_flag=True, help="Use a real small model on this machine.")
def demo(live: bool) -> None:
    """Run the same runaway agent twice, bare and guarded, and show both side by side."""
    raise SystemExit(2 if live else 0)
