"""What is known of exceptions, one file for each family of providers and libraries.

Contract: tables of names; nothing of the providers is imported.
"""

from __future__ import annotations

from functools import lru_cache

from shearpin.boundary.known import (
    anthropic,
    aws,
    builtins,
    databases,
    google,
    hosts,
    http,
    mistral,
    openai,
)
from shearpin.boundary.known.kinds import Family, Kind
from shearpin.boundary.reading import origins_of

__all__ = ["families_of", "family_of", "kinds_of"]

_FAMILIES: tuple[Family, ...] = (
    *openai.FAMILIES,
    *anthropic.FAMILIES,
    *google.FAMILIES,
    *mistral.FAMILIES,
    *aws.FAMILIES,
    *http.FAMILIES,
    *hosts.FAMILIES,
    *databases.FAMILIES,
    *builtins.FAMILIES,
)


@lru_cache(maxsize=512)
def family_of(module: str) -> Family | None:
    """The family that a module belongs to; None where it is not known."""
    return next((family for family in _FAMILIES if family.owns(module)), None)


def families_of(error: BaseException) -> list[Family]:
    """The families along the bases of an exception's class, the nearest first."""
    found: list[Family] = []
    for origin in origins_of(error):
        family = family_of(origin.module)
        if family is not None and family not in found:
            found.append(family)
    return found


def kinds_of(error: BaseException) -> list[Kind]:
    """What is known by class name along the bases of an exception's class, the nearest first."""
    return [
        known
        for origin in origins_of(error)
        if (family := family_of(origin.module)) is not None
        and (known := family.kinds.get(origin.name)) is not None
    ]
