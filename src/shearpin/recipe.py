"""The guard: the immutable recipe, and the front door `guard(graph)`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from shearpin.core.breaker import BreakerSettings
from shearpin.core.budget import Budget, budgets_of
from shearpin.core.checks import known_options
from shearpin.core.detectors import DEFAULT_DETECTORS, Detector
from shearpin.core.modes import Mode
from shearpin.core.overrides import Override
from shearpin.core.patience import Patience
from shearpin.core.settings import Settings
from shearpin.core.tools import IGNORED_ARGUMENTS, ToolFacts
from shearpin.errors import ConfigError
from shearpin.learners import Learns, adaptive_of, with_early_nudges
from shearpin.occasion import Occasion
from shearpin.options import ON_STOP, OnStop, bring_into_form
from shearpin.presets import preset_named
from shearpin.verdicts import Verdict

if TYPE_CHECKING:
    from shearpin.adapters.scope import GuardRun
    from shearpin.analysis.adaptive import Adaptive
    from shearpin.analysis.choices import Choices
    from shearpin.analysis.kept import Place
    from shearpin.boundary.boundary import Boundary
    from shearpin.ledgers import Ledger
    from shearpin.pricing import PriceBook, Pricing, UnknownPrice
    from shearpin.stores.base import Store

__all__ = ["ON_STOP", "Guard", "Occasion", "OnStop", "guard"]

G = TypeVar("G")


@dataclass(frozen=True)
class Guard(Learns):
    """What to watch for and what to do about it: an immutable recipe for any number of runs.

    Attributes:
        mode: `observe` records and never acts, `warn` nudges at most, `enforce` (default) acts.
        detectors: the rules; all of them by default.
        breaker: patience of the circuit breaker.
        tools: what is known of tools, by name; see `ToolFacts`.
        ignored_arguments: argument names that are commentary, not part of a call's identity.
        language: of nudges and last words, `en` or `zh`.
        on_stop: `end` (default) ends a stopped run the normal way: the call returns, state is
            saved, the conversation has a last word. `raise` does the same and then raises a
            `TrippedError`. `wrap_up` asks the model once more first, without tools, for the answer
            that it has. `pause` interrupts the run for a person, who may let it go on; it needs a
            checkpointer.
        state: where a conversation's session lives between runs. `auto` (default): with the
            thread's newest checkpoint, where there is a checkpointer and a thread id, else in
            memory. `memory`: always there. `checkpointer`: as `auto`, but a graph without one is
            refused. A URL, e.g. `sqlite:///sessions.db`, or a `Store`: in a store of its own.
        name: shown in reports in place of the graph's name.
        patience: how soon the guard speaks and stops, from 0 (soon) to 1 (late), or `minimal`,
            `low`, `medium`, `high`, `maximal`. Scales all counts that were not set by hand. None
            (default): the preset's, else 0.5.
        preset: settings for a situation: `polling`, `browser`, `coding`, `research`, `batch` or
            `negotiation`. What is given besides goes before it.
        overrides: other thresholds for some tools or nodes; the first that matches counts.
        budget: what may be used: a `Budget`, a short form such as `"$0.50"` or
            `"40 calls, 5 min"`, or several of them for different scopes. None (default): no limit.
        unknown_price: what to do where a dollar limit is set and a model has no known price:
            `refuse` (default) its calls, `warn` and leave them out, or the price to assume.
        prices: the path of a price file, or a price book; None is the catalogue of list prices.
        budget_faults: what follows where a call cannot be held, because the budget itself is at
            fault: `stop` (default) refuses the call, because a cap is a cap; `go_on` makes it.
        ledger: where holds and spend are kept; a `shearpin.ledgers.Ledger`. None (default): in the
            memory of this process, and with the conversation. Runs of all graphs that are given the
            same ledger are kept in it; conversations are told apart by guard name and thread id.
        repair: what to do where providers would refuse the history, because a call has no answer or
            an answer no call: `lend` (default) a mended copy to the model and leave what is saved
            alone, `save` the mended history when the next turn begins, or `off`.
        save_every: with a checkpointer or a store, also save the session in mid-run, after so many
            nodes. 0 (default): at the end of the run only, so that a process that is killed forgets
            what its last run has counted. 1 loses nothing but the calls of unfinished nodes, and
            costs one write per node. `call` saves before each model call of a run with a budget as
            well, with what is set aside for it, so that a cap holds through a kill.
        modes: other modes by place, e.g. `{"node:planner": "observe", "tool:charge": "warn"}`; `*`
            and `?` stand for any characters. Where tool and node are named, the one that acts less
            counts. Budgets follow `mode` alone.
        exclude: names or patterns of nodes that are left alone: what happens in them is neither
            judged nor stopped. Budgets still count it.
        messages: templates in place of the guard's own words, e.g. `{"nudge.repeat": "..."}`.
        on_loop: what is done about a loop, once, before the run ends over it: `rollback` to the
            state before it, `without_tool` for some rounds, `node:` and the name of the node to
            go on at, or `model:` and the name, in `models`, of the model to go on with for some
            rounds. None (default): nothing.
        models: chat models by names of yours, for `on_loop`; or texts for LangChain's
            `init_chat_model`. A model with tools bound to it is taken as it is; to any other the
            tools of the model that it stands in for are bound.
        on_verdict: a function of yours, called with each verdict that is about to be carried out
            and its `Occasion`. It may return another verdict to be carried out instead.
        choices: an `analysis.choices.Choices`, or where to keep one: wordings, refusals and ways
            out are chosen by what they did before. None (default): the fixed ladder.
        adaptive: an `analysis.adaptive.Adaptive`, or where to keep one: the patience follows what
            happens, within bounds. None (default): only in `observe`, without a patience by hand.
        early_nudges: whether a loop probability above a bound (a number, True: 0.98) may nudge
            before a rule does; it never does more.
        boundary: what is done about failures of tools, models and nodes: a `Boundary`, or True for
            one with its defaults. None (default) or False: nothing, errors are as they were.

    Raises:
        ConfigError: a value is wrong; the message names the field and the fix.

    Example:
        >>> recipe = Guard(mode="warn")
        >>> recipe.on_stop
        'end'
    """

    mode: Mode = "enforce"
    detectors: tuple[Detector, ...] = DEFAULT_DETECTORS
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    tools: Mapping[str, ToolFacts] = field(default_factory=dict[str, ToolFacts])
    ignored_arguments: frozenset[str] = IGNORED_ARGUMENTS
    language: Literal["en", "zh"] = "en"
    on_stop: OnStop = "end"
    state: str | Store = "auto"
    name: str | None = None
    patience: Patience | None = None
    preset: str | None = None
    overrides: tuple[Override, ...] = ()
    budget: Budget | str | Sequence[Budget | str] | None = None
    unknown_price: UnknownPrice = "refuse"
    prices: PriceBook | str | Path | None = None
    budget_faults: Literal["stop", "go_on"] = "stop"
    ledger: Ledger | None = None
    repair: Literal["lend", "save", "off"] = "lend"
    save_every: int | Literal["call"] = 0
    modes: Mapping[str, Mode] = field(default_factory=dict[str, Mode])
    exclude: tuple[str, ...] = ()
    messages: Mapping[str, str] = field(default_factory=dict[str, str])
    on_loop: str | None = None
    models: Mapping[str, object] = field(default_factory=dict[str, object])
    on_verdict: Callable[[Verdict, Occasion], object] | None = None
    boundary: Boundary | bool | None = None
    choices: Choices | str | Path | None = None
    adaptive: Adaptive | Place | bool = None
    early_nudges: bool | float = False

    def __post_init__(self) -> None:
        bring_into_form(self)
        by_hand = self.patience is not None or self.preset is not None
        adaptive = adaptive_of(self.adaptive, self.mode, self.name, by_hand=by_hand)
        object.__setattr__(self, "_adaptive", adaptive)
        object.__setattr__(self, "_settings", self._build())
        object.__setattr__(self, "_budgets", budgets_of(self.budget))
        if self.budget is not None or self.unknown_price != "refuse" or self.prices is not None:
            object.__setattr__(self, "_pricing", self._price())

    @property
    def settings(self) -> Settings:
        """The part of the recipe that the core judges by."""
        return cast("Settings", self.__dict__["_settings"])

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets, at most one for each kind of scope."""
        return cast("tuple[Budget, ...]", self.__dict__["_budgets"])

    @property
    def pricing(self) -> Pricing:
        """What calls cost, and what to do where that is unknown."""
        found = cast("Pricing | None", self.__dict__.get("_pricing"))
        if found is None:
            found = self._price()
            object.__setattr__(self, "_pricing", found)
        return found

    def _price(self) -> Pricing:
        from shearpin.pricing import Pricing

        return Pricing(cast("PriceBook | None", self.prices), unknown_price=self.unknown_price)

    def _build(self) -> Settings:
        patience, breaker, overrides = self.patience, self.breaker, tuple(self.overrides)
        if self.preset is not None:
            preset = preset_named(self.preset)
            patience = preset.patience if patience is None else patience
            breaker = preset.breaker if breaker == BreakerSettings() else breaker
            overrides += preset.overrides
        return Settings(
            mode=self.mode,
            detectors=with_early_nudges(self.detectors, self.early_nudges),
            breaker=breaker,
            patience=0.5 if patience is None else patience,
            overrides=overrides,
            tools=dict(self.tools),
            ignored_arguments=self.ignored_arguments,
            language=self.language,
            modes=dict(self.modes),
            exclude=self.exclude,
            messages=dict(self.messages),
            on_loop=self.on_loop,
            choices=cast("Choices | None", self.choices),
        )

    def wrap(self, graph: G) -> G:
        """A guarded copy of a graph, of the same type; the graph itself stays unguarded.

        Args:
            graph: a compiled LangGraph graph (also from `create_agent`, deepagents or
                `@entrypoint`), or a `StateGraph` that is still to be compiled.

        Raises:
            ConfigError: it is something else, or cannot be guarded as this recipe says.
        """
        from shearpin.adapters.langgraph.wrapping import wrap

        return wrap(graph, self)

    def run(
        self, name: str | None = None, *, thread: str | None = None
    ) -> AbstractContextManager[GuardRun]:
        """A run around plain chains and chat models: every call in the `with` block is guarded.

        A stop ends the block; `run.stopped` and `run.report()` say why. With `on_stop="raise"` the
        block raises instead.

        Args:
            name: shown in the report.
            thread: id of the conversation, shown in the report.

        Example:
            >>> with Guard().run() as run:
            ...     pass  # chain.invoke(...)
            >>> run.stopped is None
            True
        """
        from shearpin.adapters.scope import guarded_scope

        scope: AbstractContextManager[GuardRun] = guarded_scope(
            self, name or self.name or "run", thread
        )
        return scope

    @classmethod
    def from_file(cls, path: str | Path) -> Guard:
        """A guard from a TOML file; see the documentation for its keys.

        Raises:
            ConfigError: the file cannot be read, or a key or value is wrong; names the key.
        """
        from shearpin.configuration import guard_options

        try:
            text = Path(path).read_text(encoding="utf-8")
            data = tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: is not valid TOML: {error}") from error
        return cls(**guard_options(data, str(path)))


def guard(graph: G, policy: Guard | None = None, **options: object) -> G:
    """Guard a graph: the front door.

    Args:
        graph: a compiled LangGraph graph or agent, or a `StateGraph` still to be compiled.
        policy: a recipe made beforehand; excludes further options.
        options: the fields of `Guard`, e.g. `mode="warn"`, `on_stop="raise"`.

    Returns:
        A guarded copy of the same type, with one more method: `report(config)`.

    Raises:
        ConfigError: an option is unknown or wrong, or the graph is not one.

    Example:
        >>> app = guard(graph, on_stop="raise")  # doctest: +SKIP
    """
    if policy is None:
        return recipe_of(options).wrap(graph)
    if not isinstance(policy, Guard):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"policy must be a Guard, not {type(policy).__name__}")
    if options:
        raise ConfigError(
            "guard() takes a policy or options, not both; put into the policy: "
            + ", ".join(sorted(options))
        )
    return policy.wrap(graph)


def recipe_of(options: Mapping[str, object]) -> Guard:
    """A guard from keyword options, with a helpful error for a misspelt one."""
    known_options("guard() has no option", options, [spec.name for spec in fields(Guard)])
    return Guard(**dict(options))  # pyright: ignore[reportArgumentType]
