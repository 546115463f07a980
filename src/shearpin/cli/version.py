"""`shearpin version`: the versions that matter in a bug report."""

from __future__ import annotations

import click

__all__ = ["version"]

_HOSTS = ("langgraph", "langgraph-prebuilt", "langgraph-checkpoint", "langchain-core", "langchain")


@click.command()
def version() -> None:
    """Show the versions of Shearpin, Python and the hosts.

    Paste the output into a bug report.
    """
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    for name in ("shearpin", *_HOSTS):
        try:
            found = installed(name)
        except PackageNotFoundError:
            found = "not installed"
        click.echo(f"{name:<22}{found}")
    click.echo(f"{'python':<22}{platform.python_version()} ({platform.system().lower()})")
