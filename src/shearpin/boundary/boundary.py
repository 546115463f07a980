"""The error boundary of a guard: what is done about failures, as an immutable recipe.

Contract: everything is checked when it is built, and a `ConfigError` names the field and the fix. A
boundary holds settings only; what a run has counted is in its tally, what outlives it in a store.
Control flow (interrupts, commands, cancellation) is no failure, and no setting can make it one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from shearpin.boundary.categories import ERROR_TYPES, WHOLE_RUN, Classification, ErrorCategory
from shearpin.boundary.settings import Answers, Availability, Retries, ToolPolicy
from shearpin.errors import ConfigError

if TYPE_CHECKING:
    from shearpin.boundary.classification import Rule
    from shearpin.stores.base import Store

__all__ = ["ACTIONS", "Action", "Boundary", "Failure", "Handler"]

Action: TypeAlias = Literal[
    "raise", "continue", "retry", "rollback", "alternative", "modify_prompt", "terminate"
]
"""What is done about a failed node."""

ACTIONS: Final[tuple[Action, ...]] = (
    "raise",
    "continue",
    "retry",
    "rollback",
    "alternative",
    "modify_prompt",
    "terminate",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that failed: what a handler decides by.

    Attributes:
        node: its name.
        error: what it raised.
        classification: what is known of that.
        attempt: how often the node has failed in a row, this time included.
        state: what the node was given; not to be changed.
        thread: id of the conversation, where there is one.
    """

    node: str
    error: BaseException
    classification: Classification
    attempt: int
    state: object
    thread: str | None = None


Handler: TypeAlias = Callable[[Failure], object]
"""Decides about a failure: returns the name of an action, an update of the state (a mapping), a
`Command`, or None for what the boundary would do by itself. Where it fails, that is done as well,
and the fault is in the report."""

_TYPE = re.compile(r"[a-z][a-z0-9_.-]*")
_SAFE_PROMPT = {"error": "", "attempt": 1, "node": ""}


@dataclass(frozen=True)
class Boundary:
    """What a guard does about failures of tools, models and nodes.

    Attributes:
        nodes: names or patterns of the nodes whose failures it acts on. Default: all.
        on: an action or a function of yours by category, error type or exception class; the most
            specific one counts: class, then type, then category. By default a `retryable` failure
            is retried; a `degradable` one takes the node's alternative, else its substitute, else
            ends the run; a `fatal` one ends it. Where the state has no messages to say so in, the
            error is raised instead, unless `on` names `terminate`.
        max_retries: how often a node is run again, by `retry` or `modify_prompt`, for one failure.
            Default 2.
        rollback_limit: how often a run may go back to an earlier state. Default 2.
        alternative: the node at which to go on, by the node that failed.
        substitute: the update that is written in place of a failed node's own, by node.
        prompt: what `modify_prompt` adds to what the node is given; `{error}`, `{attempt}` and
            `{node}` are filled in. None: words of ours.
        cancel_siblings: whether tool calls that run side by side with one that fails for good are
            given up: not begun, or cancelled. Calls whose effect is recorded are left to finish.
            True (default): where the failure concerns the whole run (`authentication`,
            `permission`, `configuration`, `ledger`, `resources`), and not for a bug of one tool;
            `all`: over every fatal failure; False: never.
        tools: what is done about single tools, by name or pattern; a name goes before a pattern.
        retries: how failed calls and nodes are tried again.
        availability: when a tool or model counts as down. None (default): never.
        models: chat models to fall back on, in order.
        answers: what is done about answers of no use, and about requests that are too long.
        error_budget: failures of a run that were not fatal, after which it ends with a degraded
            answer that says so. None: no bound. Default 25.
        rules: your own classifications, asked before ours.
        store: where effects and availability are kept: `memory:` (default), an SQLite URL such as
            `sqlite:///effects.db`, or a store.

    Raises:
        ConfigError: a value is wrong, or settings contradict each other.

    Example:
        >>> boundary = Boundary(alternative={"search": "answer_from_memory"})
        >>> boundary.covers("search")
        True
    """

    nodes: Sequence[str] = ("*",)
    on: Mapping[ErrorCategory | str | type[BaseException], Action | Handler] = field(
        default_factory=dict["ErrorCategory | str | type[BaseException]", "Action | Handler"]
    )
    max_retries: int = 2
    rollback_limit: int = 2
    alternative: Mapping[str, str] = field(default_factory=dict[str, str])
    substitute: Mapping[str, object] = field(default_factory=dict[str, object])
    prompt: str | None = None
    cancel_siblings: bool | Literal["all"] = True
    tools: Mapping[str, ToolPolicy] = field(default_factory=dict[str, ToolPolicy])
    retries: Retries = field(default_factory=Retries)
    availability: Availability | None = None
    models: Sequence[object] = ()
    answers: Answers = field(default_factory=Answers)
    error_budget: int | None = 25
    rules: Sequence[Rule] = ()
    store: str | Store = "memory:"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "nodes", _patterns(self.nodes))
        put(self, "on", dict(_checked(self.on, open_types=bool(self.rules))))
        for name in ("alternative", "substitute", "tools"):
            value: object = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ConfigError(f"Boundary.{name} must be a mapping by name, not {value!r}")
            put(self, name, dict(cast("Mapping[str, object]", value)))
        for name in ("max_retries", "rollback_limit", "error_budget"):
            value = getattr(self, name)
            if name == "error_budget" and value is None:
                continue
            if type(value) is not int or value < 0:
                raise ConfigError(f"Boundary.{name} must be 0 or more, not {value!r}")
        put(self, "models", _sequence("models", self.models))
        put(self, "rules", _sequence("rules", self.rules))
        self._check_parts()
        self._check_ways()

    def _check_parts(self) -> None:
        for name, policy in self.tools.items():
            if not isinstance(policy, ToolPolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"Boundary.tools[{name!r}] must be a ToolPolicy, not {policy!r}")
        _kind("retries", self.retries, Retries)
        _kind("answers", self.answers, Answers)
        if self.availability is not None:
            _kind("availability", self.availability, Availability)
        for rule in self.rules:
            if not callable(rule):
                raise ConfigError(f"Boundary.rules must hold functions, not {rule!r}")
        for model in self.models:
            if not callable(getattr(model, "invoke", None)):
                raise ConfigError(f"Boundary.models must hold chat models, not {model!r}")
        if type(self.cancel_siblings) is not bool and self.cancel_siblings != "all":
            raise ConfigError(
                "Boundary.cancel_siblings must be True, False or 'all', "
                f"not {self.cancel_siblings!r}"
            )
        if isinstance(self.store, str) and ":" not in self.store:
            raise ConfigError(
                f"Boundary.store must be a URL such as 'memory:' or 'sqlite:///effects.db', "
                f"not {self.store!r}"
            )
        if self.prompt is not None:
            try:
                self.prompt.format(**_SAFE_PROMPT)
            except (AttributeError, LookupError, ValueError) as error:
                raise ConfigError(
                    "Boundary.prompt must be a text with {error}, {attempt} and {node} in it "
                    f"(and nothing else in braces), not {self.prompt!r}"
                ) from error

    def _check_ways(self) -> None:
        """Nodes with a way of their own are covered, and no ways lead in a circle."""
        for name, ways in (("alternative", self.alternative), ("substitute", self.substitute)):
            for node in ways:
                if not self.covers(node):
                    raise ConfigError(
                        f"Boundary.{name} names the node {node!r}, which nodes="
                        f"{list(self.nodes)!r} leaves out; add it there, or take it out here"
                    )
        for start, target in self.alternative.items():
            if not isinstance(target, str) or not target:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(
                    f"Boundary.alternative[{start!r}] must name a node, not {target!r}"
                )
            seen, onward = [start], self.alternative.get(start)
            while onward is not None:
                if onward in seen:
                    circle = " -> ".join([*seen, onward])
                    raise ConfigError(
                        f"Boundary.alternative leads in a circle: {circle}; leave one of them out"
                    )
                seen.append(onward)
                onward = self.alternative.get(onward)

    # -- what is asked of it ----------------------------------------------------------------------

    def covers(self, node: str) -> bool:
        """Whether failures of a node are acted on."""
        return any(fnmatchcase(node, pattern) for pattern in self.nodes)

    def policy(self, tool: str) -> ToolPolicy:
        """What is done about a tool: by its name, else by the first pattern that fits."""
        found = self.tools.get(tool)
        if found is None:
            for pattern, policy in self.tools.items():
                if fnmatchcase(tool, pattern):
                    return policy
        return found or _NOTHING

    def gives_up_siblings(self, category: ErrorCategory | None, error_type: str | None) -> bool:
        """Whether a failure of one tool call ends those that run side by side with it."""
        if category is not ErrorCategory.FATAL or self.cancel_siblings is False:
            return False
        return self.cancel_siblings == "all" or error_type in WHOLE_RUN

    def decision(self, node: str, classification: Classification) -> Action | Handler:
        """What `on` says about a failure of a node, and the defaults where it says nothing."""
        return self.said(classification) or self.by_default(node, classification)

    def said(self, classification: Classification) -> Action | Handler | None:
        """What `on` says about a failure; None where it says nothing."""
        for kind in type(classification.root).__mro__:
            if kind in self.on:
                return self.on[kind]
        for key in (classification.error_type, classification.category):
            if key in self.on:
                return self.on[key]
        return None

    def by_default(
        self, node: str, classification: Classification, *, unclear: bool = False
    ) -> Action:
        """What is done where `on` says nothing; `unclear` where a call in it may have acted."""
        if classification.category is ErrorCategory.RETRYABLE:
            return self.degrading(node) if unclear else "retry"
        if classification.category is ErrorCategory.DEGRADABLE:
            return self.degrading(node)
        return "terminate" if classification.category is ErrorCategory.FATAL else "raise"

    def degrading(self, node: str) -> Action:
        """The next best thing to a node's own work: its alternative, its substitute, or the end."""
        if node in self.alternative:
            return "alternative"
        return "continue" if node in self.substitute else "terminate"


_NOTHING: Final = ToolPolicy()


def _patterns(given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ConfigError(f"Boundary.nodes must be a list of names, not one text: [{given!r}]")
    names = _sequence("nodes", given)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            "Boundary.nodes must hold names or patterns of nodes, such as ['search', 'tool_*']; "
            f"['*'] means all; not {given!r}"
        )
    return cast("tuple[str, ...]", names)


def _sequence(name: str, given: object) -> tuple[object, ...]:
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise ConfigError(f"Boundary.{name} must be a list, not {given!r}")
    return tuple(cast("Iterable[object]", given))


def _kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"Boundary.{name} must be {kind.__name__}(...), not {value!r}")


def _checked(
    given: Mapping[ErrorCategory | str | type[BaseException], Action | Handler],
    *,
    open_types: bool,
) -> Iterable[tuple[ErrorCategory | str | type[BaseException], Action | Handler]]:
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"Boundary.on must be a mapping of failures to actions, not {given!r}")
    for key, action in given.items():
        if not callable(action) and action not in ACTIONS:
            close = get_close_matches(str(action), ACTIONS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(ACTIONS)}"
            raise ConfigError(
                f"Boundary.on[{_shown(key)}] must be an action or a function, not {action!r}; "
                f"{hint}"
            )
        if iscoroutinefunction(action):
            raise ConfigError(
                f"Boundary.on[{_shown(key)}] must be a plain function, not an asynchronous one: "
                "it decides at once, and threads call it too"
            )
        yield _failure_key(key, open_types=open_types), action


def _failure_key(key: object, *, open_types: bool) -> ErrorCategory | str | type[BaseException]:
    """A category by its name, an error type, or an exception class; `open_types` where rules of
    the user's may make types of their own."""
    names = [category.value for category in ErrorCategory]
    if key == ErrorCategory.CONTROL:
        raise ConfigError(
            "Boundary.on names 'control', but interrupts, commands and cancellation are no "
            "failures and are never touched; leave it out"
        )
    if isinstance(key, str):
        if key in names:
            return ErrorCategory(key)
        if key in ERROR_TYPES:
            return key
        close = get_close_matches(key, [*names, *sorted(ERROR_TYPES)], n=1, cutoff=0.75)
        if close and not (open_types and close[0] in ERROR_TYPES):
            raise ConfigError(f"Boundary.on names {key!r}; did you mean {close[0]!r}?")
        if _TYPE.fullmatch(key):
            if open_types:
                return key
            raise ConfigError(
                f"Boundary.on names {key!r}, which is no type of error that is told apart: a "
                f"category ({', '.join(names[:3])}), or one of {', '.join(sorted(ERROR_TYPES))}; "
                "types of your own come from Boundary(rules=...)"
            )
    elif isinstance(key, type) and issubclass(cast("type[object]", key), Exception):
        return cast("type[Exception]", key)
    raise ConfigError(
        f"Boundary.on must be keyed by a category ({', '.join(names[:3])}), an error type such as "
        f"'rate_limit', or a class of exceptions, not by {_shown(key)}"
    )


def _shown(key: object) -> str:
    key = cast("type[object] | str", key)
    return key.__name__ if isinstance(key, type) else repr(key)
