"""Going on after a node has failed, in each of the ways in which LangGraph runs nodes.

Contract: what was decided is carried out, and if that fails as well, it is asked again, until the
node has an output, its graph is ended, or the error is to be raised as without a boundary.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from shearpin.adapters.langgraph.bounding import Failing

__all__ = ["Bounded"]


class Bounded(Failing):
    """A failing node within a boundary."""

    __slots__ = ()

    def resumed(self, error: BaseException) -> Any:
        """Go on after a failure, with what comes of the node in the end."""
        while True:
            way = self.next(error)
            if way is None or way.inner is None:
                return self.given_up(way, error)
            try:
                if way.wait:
                    self.bounds.sleep(self.waits(way.wait))
                output = way.inner.invoke(way.input, way.config)
            except BaseException as raised:
                error = raised
            else:
                return self.done(way, output)

    async def aresumed(self, error: BaseException) -> Any:
        """`resumed`, for event loops."""
        while True:
            way = self.next(error)
            if way is None or way.inner is None:
                return self.given_up(way, error)
            try:
                if way.wait:
                    await self.bounds.asleep(self.waits(way.wait))
                output = await way.inner.ainvoke(way.input, way.config)
            except BaseException as raised:
                error = raised
            else:
                return self.done(way, output)

    def streamed(self, error: BaseException) -> Iterator[Any]:
        """`resumed`, with what the node streams."""
        while True:
            way = self.next(error)
            if way is None or way.inner is None:
                self.given_up(way, error)
                return
            chunks: list[Any] = []
            try:
                if way.wait:
                    self.bounds.sleep(self.waits(way.wait))
                for chunk in way.inner.stream(way.input, way.config):
                    chunks = [chunk]
                    yield chunk
            except BaseException as raised:
                error = raised
            else:
                self.done(way, *chunks)
                return

    async def astreamed(self, error: BaseException) -> AsyncIterator[Any]:
        """`streamed`, for event loops."""
        while True:
            way = self.next(error)
            if way is None or way.inner is None:
                self.given_up(way, error)
                return
            chunks: list[Any] = []
            try:
                if way.wait:
                    await self.bounds.asleep(self.waits(way.wait))
                async for chunk in way.inner.astream(way.input, way.config):
                    chunks = [chunk]
                    yield chunk
            except BaseException as raised:
                error = raised
            else:
                self.done(way, *chunks)
                return
