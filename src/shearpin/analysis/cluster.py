"""Pieces of work on a Ray cluster, for fleets with more runs than one machine can replay.

Contract: results come in order, and at most a few pieces for each processor of the cluster are on
their way. Ray is an extra and is imported only here. A cluster that was started here is ended here;
one that was there before is left running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final, TypeVar

from shearpin.errors import ConfigError, ShearpinError

__all__ = ["LOCAL", "spread_over_ray"]

LOCAL: Final = "local"
"""The address that starts a cluster on this machine."""
_AHEAD: Final = 3

Given = TypeVar("Given")
Made = TypeVar("Made")


def spread_over_ray(
    work: Callable[[Given], Made], given: Iterable[Given], address: str
) -> Iterator[Made]:
    """What `work` makes of each piece, in order.

    Args:
        work: a function that can be pickled; the package has to be installed on the cluster.
        given: pieces of work.
        address: `HOST:PORT`, `ray://HOST:PORT`, `auto`, or `local` to start a cluster here.

    Raises:
        ConfigError: Ray is not installed, or the cluster cannot be reached.
    """
    ray = _ray()
    began = not ray.is_initialized()
    if began:
        try:
            ray.init(
                address=LOCAL if address == LOCAL else address,
                include_dashboard=False if address == LOCAL else None,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise ConfigError(f"the Ray cluster {address!r} cannot be reached: {error}") from error
    try:
        yield from _ordered(ray, work, given)
    finally:
        if began:
            ray.shutdown()


def _ordered(ray: Any, work: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    remote = ray.remote(work_on)
    shared = ray.put(work)
    ahead = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: list[Any] = []
    for piece in given:
        waiting.append(remote.remote(shared, piece))
        if len(waiting) >= ahead:
            yield _got(ray, waiting.pop(0))
    for reference in waiting:
        yield _got(ray, reference)


def work_on(work: Callable[[Given], Made], piece: Given) -> Made:
    """One piece of work, as the cluster runs it."""
    return work(piece)


def _got(ray: Any, reference: Any) -> Any:
    """The result, or the error of the piece itself instead of Ray's wrapping of it."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ShearpinError):
            raise cause from None
        raise


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigError("--ray needs Ray, which is not installed: pip install ray") from error
