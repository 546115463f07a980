"""What a guard is given, checked field by field and brought into the form in which it is kept.

Contract: whatever is wrong is a `ConfigError` that names the field, the value and the fix, raised
when the guard is built. What the core judges by is checked again, in depth, by `core.settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from shearpin.core.breaker import BreakerSettings
from shearpin.core.checks import instance, instances, mapping, one_of, text, texts
from shearpin.core.modes import MODES
from shearpin.core.overrides import Override
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.stores.opening import check_place

if TYPE_CHECKING:
    from shearpin.recipe import Guard

__all__ = ["ON_STOP", "OnStop", "bring_into_form"]

OnStop: TypeAlias = Literal["end", "raise", "wrap_up", "pause"]
ON_STOP: Final[tuple[OnStop, ...]] = ("end", "raise", "wrap_up", "pause")

_TOOLS: Final = '{"search": ToolFacts(read_only=True)}'
_MODES: Final = '{"tool:charge": "warn"}'
_WORDS: Final = '{"nudge.repeat": "..."}'
_MODELS: Final = '{"strong": "openai:gpt-5"}'


def bring_into_form(guard: Guard) -> None:
    """Checks the fields of a guard that is being built, and puts them into their form.

    Raises:
        ConfigError: a value is wrong; names the field and the fix.
    """
    one_of("on_stop", guard.on_stop, ON_STOP)
    one_of("budget_faults", guard.budget_faults, ("stop", "go_on"))
    one_of("repair", guard.repair, ("lend", "save", "off"))
    one_of("mode", guard.mode, MODES)
    one_of("language", guard.language, ("en", "zh"))
    for name, example in (("name", "support"), ("preset", "coding"), ("on_loop", "rollback")):
        if getattr(guard, name) is not None:
            text(name, getattr(guard, name), example)
    if guard.on_verdict is not None and not callable(guard.on_verdict):
        raise ConfigError(f"on_verdict must be a function, not {guard.on_verdict!r}")
    if guard.save_every != "call" and (type(guard.save_every) is not int or guard.save_every < 0):
        raise ConfigError(
            f"save_every must be 0 or more nodes, or 'call', not {guard.save_every!r}"
        )
    check_place("state", guard.state, ("auto", "memory", "checkpointer"))
    instance("breaker", guard.breaker, BreakerSettings, "BreakerSettings(...)")
    _check_ledger(guard.ledger)
    ignored = frozenset(texts("ignored_arguments", guard.ignored_arguments, "thought"))
    _put(
        guard,
        detectors=instances("detectors", guard.detectors, object, "Repeats()"),
        ignored_arguments=ignored,
        overrides=instances("overrides", guard.overrides, Override, "Override(...)"),
        exclude=texts("exclude", guard.exclude, "telemetry"),
        boundary=_boundary(guard.boundary),
        choices=_choices(guard.choices),
        prices=_prices(guard.prices),
    )
    _check_mappings(guard)


def _check_mappings(guard: Guard) -> None:
    for name, facts in mapping("tools", guard.tools, _TOOLS).items():
        instance(f"tools[{name!r}]", facts, ToolFacts, "ToolFacts(...)")
    for place, mode in mapping("modes", guard.modes, _MODES).items():
        one_of(f"modes[{place!r}]", mode, MODES)
    for name, words in mapping("messages", guard.messages, _WORDS).items():
        text(f"messages[{name!r}]", words, "You called {tool} {count} times.")
    mapping("models", guard.models, _MODELS)


def _put(guard: Guard, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(guard, name, value)


def _boundary(given: object) -> object:
    if given is None or given is False:
        return None
    from shearpin.boundary.boundary import Boundary

    if given is True:
        return Boundary()
    if not isinstance(given, Boundary):
        raise ConfigError(f"boundary must be a Boundary, True, False or None, not {given!r}")
    return given


def _choices(given: object) -> object:
    """Choices, or where to keep them."""
    if given is None or callable(getattr(given, "choose", None)):
        return given
    if not isinstance(given, (str, Path)):
        raise ConfigError(
            "choices must be Choices(...), or where to keep them, such as 'choices.json', "
            f"not {given!r}"
        )
    from shearpin.analysis.choices import Choices

    return Choices(given)


def _prices(given: object) -> object:
    """A price book, or the one that a file holds."""
    if isinstance(given, (str, Path)):
        from shearpin.pricing import load_prices

        return load_prices(given)
    if given is not None and (isinstance(given, type) or not callable(getattr(given, "price", 0))):
        raise ConfigError(
            "prices must be the path of a price file, such as 'prices.toml', or a price book, "
            f"e.g. shearpin.pricing.load_prices('prices.toml'), not {given!r}"
        )
    return given


def _check_ledger(value: object) -> None:
    if value is None:
        return
    from shearpin.ledgers.base import Ledger

    if not isinstance(value, Ledger) or isinstance(value, type):
        raise ConfigError(
            f"ledger must be a Ledger, e.g. shearpin.ledgers.MemoryLedger(), not {value!r}"
        )
