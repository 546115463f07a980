"""What takes a failed tool's place: its last good result, another tool, a fixed answer.

Contract: tried in the order of the policy; the first that works counts, and the primary's failure
stays in the result. A fallback that fails is counted and the next one is tried; control flow in it
leaves at once. Results are kept only for tools that may fall back on them, and per thread, unless
they are declared to be the same for everyone.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from shearpin.boundary.calls import CallInfo, Hooks
from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.results import ToolResult
from shearpin.boundary.settings import Cached, Fallback, Static, ToolPolicy
from shearpin.boundary.steps import Ask, Course, Perform
from shearpin.core.secrets import without_values
from shearpin.errors import StoreError

if TYPE_CHECKING:
    from shearpin.boundary.runner import ToolCallRunner

__all__ = ["Substitutes", "name_of"]

_MOST_CHARACTERS: Final = 262_144


def name_of(fallback: object) -> str:
    """What a tool or function is called in results and reports."""
    for attribute in ("name", "__name__"):
        name = getattr(fallback, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(fallback).__name__


class Substitutes:
    """The fallbacks of one call.

    Args:
        runner: of the call.
        call: that has failed, or is to be made.
        policy: with the fallbacks.
        hooks: of the host.
        in_loop: whether this is in an event loop, where functions must not block.
        acts: whether the call changes something, so that a fallback that may have done so is the
            last one.

    Attributes:
        ambiguous: whether a fallback has failed that may have taken effect all the same.
    """

    def __init__(
        self,
        runner: ToolCallRunner,
        call: CallInfo,
        policy: ToolPolicy,
        hooks: Hooks,
        *,
        in_loop: bool,
        acts: bool,
    ) -> None:
        self.ambiguous = False
        self._runner = runner
        self._call = call
        self._fallbacks = () if policy.never_degrade else tuple(policy.fallbacks)
        self._hooks = hooks
        self._in_loop = in_loop
        self._acts = acts
        # Now, because a tool may change what it is given.
        self._keys = {
            each.shared: self._key(each) for each in self._fallbacks if isinstance(each, Cached)
        }

    def keep(self, output: object) -> Course[None]:
        """Keep a good result, if there is a fallback that may want it."""
        runner = self._runner
        for cached in self._fallbacks:
            if not isinstance(cached, Cached):
                continue
            key = self._keys[cached.shared]
            if key is None:
                continue
            try:
                text = json.dumps([runner.epoch(), self._hooks.pack(output)], ensure_ascii=False)
                text.encode()
            except (TypeError, ValueError, RecursionError):
                return  # it cannot be kept; the fallback will find nothing
            if len(text) > _MOST_CHARACTERS:
                return
            put = partial(runner.store.put, key, text, ttl_seconds=cached.max_age_seconds)
            try:
                yield Ask(put, runner.store.blocking)
            except StoreError as error:
                runner.fault("fallbacks.keep", error)

    def find(self, failed: ToolResult) -> Course[ToolResult]:
        """What the first fallback that works gives; the failure itself where none does."""
        for fallback in self._fallbacks:
            if isinstance(fallback, Static):
                found = replace(failed, success=True, output=fallback.value, degraded="static")
            elif isinstance(fallback, Cached):
                found = yield from self._recall(fallback, failed)
            else:
                found = yield from self._perform(fallback, failed)
            if found is not None:
                if self._runner.tally is not None:
                    self._runner.tally.degraded(found.degraded or "", tool=self._call.tool)
                return replace(found, outcome_unknown=False)
            if self._acts and self.ambiguous:
                return replace(failed, outcome_unknown=True)
        return failed

    def _recall(self, cached: Cached, failed: ToolResult) -> Course[ToolResult | None]:
        runner, key = self._runner, self._keys[cached.shared]
        if key is None:
            return None
        try:
            entry = yield Ask(lambda: runner.store.get(key), runner.store.blocking)
            if entry is None:
                return None
            at, packed = cast("list[Any]", json.loads(entry.value))
            age = max(0.0, runner.epoch() - float(at))
            if age > cached.max_age_seconds:
                return None
            output = self._hooks.unpack(packed)
        except (StoreError, KeyError, TypeError, ValueError) as error:
            runner.fault("fallbacks.recall", error)
            return None
        return replace(failed, success=True, output=output, degraded="cached", age_seconds=age)

    def _perform(self, fallback: Fallback, failed: ToolResult) -> Course[ToolResult | None]:
        """Another tool or function, once; its failure is counted under its own name."""
        runner, name = self._runner, name_of(fallback)
        try:
            step = self._hooks.perform(fallback) or _as_function(
                fallback, self._call, threaded=self._in_loop
            )
            output = yield step
        except Exception as error:
            if self._hooks.passes(error):
                raise
            failure = runner.classify(error)
            if failure.category is ErrorCategory.CONTROL:
                raise
            told = without_values(failure.message, self._call.args)
            if runner.tally is not None:
                runner.tally.error(replace(failure, message=told), tool=name)
            self.ambiguous = self.ambiguous or not failure.safe_to_retry
            return None
        if isinstance(output, ToolResult):  # a function made resilient
            if not output.success:
                self.ambiguous = self.ambiguous or output.outcome_unknown
                return None
            output = output.output
        elif self._hooks.handled(output):
            self.ambiguous = True
            return None
        return replace(failed, success=True, output=output, degraded=f"tool:{name}")

    def _key(self, cached: Cached) -> str | None:
        """None where the arguments cannot be told apart by their text."""
        call = self._call
        scope, whose = ("shared", "") if cached.shared else ("thread", call.thread)
        try:
            said = json.dumps([call.recorded_as, whose, dict(call.args)], sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            return None
        return f"cached:{scope}:{hashlib.sha256(said.encode()).hexdigest()}"


def _as_function(fallback: Any, call: CallInfo, *, threaded: bool) -> Perform:
    if hasattr(fallback, "invoke"):  # a tool of a host
        ainvoke = getattr(fallback, "ainvoke", None)
        if threaded and callable(ainvoke):
            return Perform(partial(ainvoke, dict(call.args)))
        return Perform(partial(fallback.invoke, dict(call.args)), threaded=threaded)
    act = partial(fallback, **{str(name): value for name, value in call.args.items()})
    return Perform(act, threaded=threaded and not inspect.iscoroutinefunction(fallback))
