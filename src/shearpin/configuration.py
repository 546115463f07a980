"""A guard's options from the data of a configuration file, each mistake named with its key.

mode = "enforce"                 # the fields of Guard by name
on_stop = "end"
ignored_arguments = ["thought"]

[detectors.repeat]               # a rule by its family; what is not named keeps its default
nudge = 4
ceiling = "block"                # none, nudge, block or stop

[detectors.monologue]
enabled = false

[detectors.untested_edits]       # a rule that is off by default, or of a plug-in: on when named
after = 6

[breaker]
trial_rounds = 2

[tools.read_status]              # what is known of a tool
polling = true

[modes]                          # other modes for some nodes or tools
"tool:charge_*" = "warn"

[models]                         # for on_loop = "model:strong"
strong = "openai:gpt-5"

[messages]                       # words of your own
"advice.outage" = "The service is down. Say so."

[boundary]                       # what is done about failures; `boundary = true` for the defaults
max_retries = 2
alternative = { search = "answer_from_memory" }
on = { fatal = "terminate", rate_limit = "retry" }

[boundary.tools.search]
retries = { attempts = 5 }
cached_seconds = 600

[[overrides]]                    # other thresholds for some tools or nodes
tools = ["browser_*"]
patience = "high"
off = ["stagnation"]
detectors.repeat.nudge = 6
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from shearpin.core.breaker import BreakerSettings
from shearpin.core.budget import Budget
from shearpin.core.detectors import DEFAULT_DETECTORS, OPTIONAL_DETECTORS, Detector
from shearpin.core.overrides import Override
from shearpin.core.tools import ToolFacts
from shearpin.errors import ConfigError
from shearpin.findings import Severity
from shearpin.plugins import plugin_detector, plugin_names

__all__ = ["guard_options"]

_PLAIN = ("mode", "language", "on_stop", "on_loop", "state", "name", "preset", "repair")
_NAMED = ("modes", "messages", "models")
_TABLES = ("detectors", "breaker", "tools", *_NAMED)
_MONEY = ("budget", "unknown_price", "prices")
_KEYS = (
    *_PLAIN,
    *_MONEY,
    "patience",
    "adaptive",
    "choices",
    "early_nudges",
    "save_every",
    "ignored_arguments",
    "exclude",
    "overrides",
    "boundary",
    *_TABLES,
)
_BOUNDARY_KEYS = (
    "nodes", "on", "max_retries", "rollback_limit", "alternative", "substitute", "prompt",
    "cancel_siblings", "tools", "retries", "answers", "availability", "error_budget", "store",
)  # fmt: skip
_POLICY_KEYS = ("retries", "never_degrade", "effect", "availability", "cached_seconds", "static")
_CHOICE_KEYS = ("place", "seed", "wordings", "words", "block", "ways", "prior", "memory")
_OVERRIDE_KEYS = ("tools", "nodes", "patience", "off", "detectors")


def guard_options(data: Mapping[str, object], where: str) -> dict[str, Any]:
    """The keyword arguments of `Guard` that a configuration stands for.

    Args:
        data: of the file.
        where: its path; that of a price file is relative to it.

    Raises:
        ConfigError: a key is unknown (with the closest valid one) or a value is wrong.
    """
    options: dict[str, Any] = {}
    for key, value in data.items():
        _check_key(key, _KEYS, where)
        options[key] = _option(key, value, where)
    return options


def _option(key: str, value: object, where: str) -> object:
    if key in _PLAIN:
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {key} must be a text, not {value!r}")
        return value
    if key in _MONEY:
        return _money(key, value, where)
    if key in _NAMED:
        return _named_texts(value, f"{where}: [{key}]")
    if key in ("save_every", "adaptive", "early_nudges"):
        return value
    if key == "choices":
        return value if isinstance(value, str) else _choices(value, f"{where}: [choices]")
    if key in ("ignored_arguments", "exclude"):
        names = _texts(value, f"{where}: {key}")
        return tuple(names) if key == "exclude" else frozenset(names)
    if key == "boundary":
        return value if isinstance(value, bool) else _boundary(value, f"{where}: [boundary]")
    if key in ("patience", "overrides"):
        return _patience(value, where) if key == "patience" else _overrides(value, where)
    at = f"{where}: [{key}]"
    table = _table(value, at)
    if key == "breaker":
        return _build(BreakerSettings, table, at)
    return _detectors(table, where) if key == "detectors" else _tools(table, where)


def _choices(value: object, at: str) -> object:
    from shearpin.analysis.choices import Choices

    table = dict(_table(value, at))
    for name in table:
        _check_key(name, _CHOICE_KEYS, at)
    try:
        return Choices(**cast("dict[str, Any]", table))
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{at}: {error}") from error


def _money(key: str, value: object, where: str) -> object:
    at = f"{where}: {key}"
    if key == "prices":
        if not isinstance(value, str):
            raise ConfigError(f"{at} must be a text, the path of a price file, not {value!r}")
        return Path(where).parent / value
    if key == "budget":
        return _budgets(value, at)
    return value if isinstance(value, str) else dict(_table(value, at))


def _budgets(value: object, at: str) -> list[Budget]:
    """A short form, a table, or several of either."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    found: list[Budget] = []
    for item in items:
        if isinstance(item, str):
            found.append(Budget.parse(item))
            continue
        settings = dict(_table(item, at))
        if "exempt" in settings:
            settings["exempt"] = tuple(_texts(settings["exempt"], f"{at}: exempt"))
        found.append(cast("Budget", _build(Budget, settings, at)))
    return found


def _detectors(data: Mapping[str, object], where: str) -> tuple[Detector, ...]:
    kept: dict[str, Detector] = {detector.family: detector for detector in DEFAULT_DETECTORS}
    families = kept | {detector.family: detector for detector in OPTIONAL_DETECTORS}
    for family in sorted(data.keys() - families):
        if family in plugin_names():
            families[family] = plugin_detector(family)
    for family, value in data.items():
        _check_key(family, families, f"{where}: [detectors]")
        at = f"{where}: [detectors.{family}]"
        settings = dict(_table(value, at))
        enabled = settings.pop("enabled", True)
        if not isinstance(enabled, bool):
            raise ConfigError(f"{at}: enabled must be true or false, not {enabled!r}")
        if not enabled:
            kept.pop(family, None)
        elif settings and not is_dataclass(families[family]):
            raise ConfigError(f"{at}: this rule takes no settings from a file")
        elif settings:
            kept[family] = cast("Detector", _build(type(families[family]), settings, at))
        else:
            kept[family] = families[family]
    return tuple(kept.values())


def _patience(value: object, where: str) -> float | str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(f"{where}: patience must be a number or a name, not {value!r}")
    return value


def _overrides(value: object, where: str) -> tuple[Override, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: overrides must be tables, each headed by [[overrides]]")
    found: list[Override] = []
    for number, item in enumerate(cast("list[object]", value), 1):
        at = f"{where}: [[overrides]] number {number}"
        table = _table(item, at)
        options: dict[str, Any] = {}
        for key, part in table.items():
            _check_key(key, _OVERRIDE_KEYS, at)
            if key == "patience":
                options[key] = _patience(part, at)
            elif key == "detectors":
                named = _table(part, f"{at}: detectors")
                given = _detectors(named, at)
                options[key] = tuple(rule for rule in given if rule.family in named)
            else:
                options[key] = tuple(_texts(part, f"{at}: {key}"))
        try:
            found.append(Override(**options))
        except ConfigError as error:
            raise ConfigError(f"{at}: {error}") from error
    return tuple(found)


def _tools(data: Mapping[str, object], where: str) -> dict[str, ToolFacts]:
    tools: dict[str, ToolFacts] = {}
    for name, value in data.items():
        at = f"{where}: [tools.{name}]"
        settings = dict(_table(value, at))
        for key in ("key", "ignore"):
            if key in settings:
                settings[key] = tuple(_texts(settings[key], f"{at}: {key}"))
        tools[name] = cast("ToolFacts", _build(ToolFacts, settings, at))
    return tools


def _boundary(value: object, at: str) -> object:
    """Everything but what only code can say: functions, models, rules, exception classes."""
    from shearpin.boundary.boundary import Boundary

    settings: dict[str, object] = {}
    for key, part in _table(value, at).items():
        where = f"{at}: {key}"
        _check_key(key, _BOUNDARY_KEYS, at)
        if key in ("alternative", "on"):
            settings[key] = _named_texts(part, where)
        elif key == "nodes":
            settings[key] = _texts(part, where)
        elif key == "tools":
            named = _table(part, where)
            settings[key] = {name: _tool_policy(named[name], f"{where}.{name}") for name in named}
        elif key == "error_budget" and part is False:
            settings[key] = None
        else:
            settings[key] = _boundary_part(key, part, where)
    return _build(Boundary, settings, at)


def _tool_policy(value: object, at: str) -> object:
    from shearpin.boundary.settings import Cached, Static, ToolPolicy

    settings: dict[str, object] = {}
    fallbacks: list[object] = []
    for key, part in _table(value, at).items():
        _check_key(key, _POLICY_KEYS, at)
        if key == "cached_seconds":
            fallbacks.insert(0, _build(Cached, {"max_age_seconds": part}, f"{at}: {key}"))
        elif key == "static":
            fallbacks.append(Static(part))
        else:
            settings[key] = _boundary_part(key, part, f"{at}: {key}")
    return _build(ToolPolicy, {**settings, "fallbacks": tuple(fallbacks)}, at)


def _boundary_part(key: str, value: object, at: str) -> object:
    """A part with settings of its own (`true`: its defaults), or the value itself."""
    from shearpin.boundary.settings import Answers, Availability, Effects, Retries

    kinds: dict[str, type[Any]] = {
        "retries": Retries, "effect": Effects, "availability": Availability, "answers": Answers
    }  # fmt: skip
    if key not in kinds:
        return value
    table = dict(_table({} if value is True else value, at))
    if "key" in table:
        table["key"] = tuple(_texts(table["key"], f"{at}: key"))
    return _build(kinds[key], table, at)


def _build(kind: type[Any], settings: Mapping[str, object], where: str) -> object:
    known = [spec.name for spec in fields(kind)]
    values = dict(settings)
    for key in values:
        _check_key(key, known, where)
    ceiling = values.get("ceiling")
    if ceiling is not None:
        labels = {severity.label: severity for severity in Severity}
        if ceiling not in labels:
            raise ConfigError(
                f"{where}: ceiling must be one of {', '.join(labels)}, not {ceiling!r}"
            )
        values["ceiling"] = labels[cast("str", ceiling)]
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} must be a table, not {value!r}")
    return cast("Mapping[str, object]", value)


def _texts(value: object, where: str) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{where} must be a list of texts, not {value!r}")
    return cast("list[str]", items)


def _named_texts(value: object, where: str) -> dict[str, str]:
    table = _table(value, where)
    for key, text in table.items():
        if not isinstance(text, str):
            hint = ' (quote a key with a dot in it: "nudge.repeat")' if type(text) is dict else ""
            raise ConfigError(f"{where}: {key} must be a text, not {text!r}{hint}")
    return cast("dict[str, str]", dict(table))


def _check_key(key: str, known: Iterable[str], where: str) -> None:
    names = list(known)
    if key not in names:
        close = get_close_matches(key, names, n=1)
        hint = (
            f"; did you mean {close[0]!r}?" if close else f"; it may be one of {', '.join(names)}"
        )
        raise ConfigError(f"{where}: unknown key {key!r}{hint}")
