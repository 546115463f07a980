"""Money at the door: exact decimals come in, floats do not.

Amounts are `Decimal` in US dollars where they are shown, and whole micro-dollars where they are
held against a cap. A fraction of a micro-dollar counts as a whole one: a hold is never too small.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from shearpin.errors import ConfigError

__all__ = ["MICROS_PER_DOLLAR", "dollars", "micros", "shifted"]

MICROS_PER_DOLLAR = 1_000_000


def dollars(value: Decimal | str | int, name: str = "amount") -> Decimal:
    """The exact amount in US dollars.

    Args:
        value: a `Decimal`, a string such as `"0.30"`, or a whole number; zero or more.
        name: what the value is, for the message.

    Raises:
        ConfigError: a float (0.1 is not a tenth), no number, negative, or not finite.
    """
    if isinstance(value, str):
        try:
            exact = Decimal(value.strip().removeprefix("$"))
        except InvalidOperation:
            raise ConfigError(
                f'{name} must be an amount in dollars such as "0.30", not {value!r}'
            ) from None
    elif isinstance(value, Decimal):
        exact = value
    elif isinstance(value, int) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        exact = Decimal(value)
    else:
        raise ConfigError(
            f"{name} must be a Decimal or a string, not {value!r}: a float is not exact; "
            f'write "{value}" in quotes'
        )
    if not exact.is_finite() or exact < 0:
        raise ConfigError(f"{name} must be finite and not negative, not {value!r}")
    return exact


def shifted(amount: Decimal, places: int) -> int:
    """The amount times ten to the power of `places`, which has to be enough to make it whole."""
    _, digits, exponent = amount.as_tuple()
    return int("".join(map(str, digits)) or "0") * 10 ** (int(exponent) + places)


def micros(amount: Decimal) -> int:
    """The amount in whole micro-dollars, rounded up."""
    places = max(-int(amount.as_tuple().exponent), 6)
    return -(-shifted(amount, places) // 10 ** (places - 6))
