"""How many tokens a prompt has, before a provider has said so; and how that guess learns.

The first call of a speaker (an agent's model in one place) is measured by the kinds of bytes in its
texts, a guess that is meant to be high. From then on the provider's own count of the previous call
is the base, and only what was added since is guessed.

*Source*: rates fitted against the `o200k_base` and `cl100k_base` vocabularies on 1,859 texts of ten
collections of recorded agent runs, source code, JSON, tables, base64, hexadecimal digits and six
scripts. On nine of ten texts the guess is 1.15 to 1.8 times the count (median 1.5); it is below the
count on one in sixty, mostly on dumps of machine code.
"""

from __future__ import annotations

from collections import OrderedDict
from math import ceil
from typing import Final, NamedTuple, cast

__all__ = ["ESTIMATES", "Estimate", "Learner", "ProviderRates", "rates_of", "text_tokens"]


class ProviderRates(NamedTuple):
    """How a provider counts, as an upper bound.

    Attributes:
        scale: tokens of its vocabulary per token of OpenAI's.
        message: tokens around each message.
        image: tokens of one image of unknown size.
        tools: tokens of the hidden prompt that comes with tools.
    """

    scale: float
    message: int
    image: int
    tools: int


ESTIMATES: Final[dict[str, ProviderRates]] = {
    "openai": ProviderRates(1.0, 5, 1_600, 60),
    "azure": ProviderRates(1.0, 5, 1_600, 60),
    "anthropic": ProviderRates(1.25, 8, 1_650, 550),
    "bedrock": ProviderRates(1.25, 8, 1_650, 550),
    "google": ProviderRates(1.05, 6, 1_300, 60),
    "mistralai": ProviderRates(1.2, 6, 1_600, 200),
}
"""What is known of providers, by the beginning of LangChain's name for them."""

_OTHER: Final = ProviderRates(1.2, 8, 1_650, 100)

_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_SPACES = b" \n\t\r"
_DIGITS = b"0123456789"
_ASCII = bytes(range(128))
_WORD = 7  # letters per separator that still look like words


def rates_of(provider: str | None) -> ProviderRates:
    """What is known of a provider, e.g. `openai`, `google_genai`, `anthropic`."""
    name = (provider or "").lower()
    for known, rates in ESTIMATES.items():
        if name.startswith(known) or (known == "bedrock" and "bedrock" in name):
            return rates
    return _OTHER


def text_tokens(text: str) -> float:
    """Tokens of a text, guessed high, in OpenAI's vocabulary.

    Example:
        >>> text_tokens("The quick brown fox jumps over the lazy dog.")  # 10 in o200k_base
        14.05
    """
    data = text.encode("utf-8", "replace")
    size = len(data)
    letters = size - len(data.translate(None, _LETTERS))
    spaces = size - len(data.translate(None, _SPACES))
    digits = size - len(data.translate(None, _DIGITS))
    other = len(data.translate(None, _ASCII))
    signs = size - letters - spaces - digits - other
    words = min(letters, _WORD * (spaces + signs + 1))
    dense = letters - words
    guess = words / 3.5 + spaces * 0.4 + digits + signs * 0.85 + other * 0.6 + dense * 0.8
    return round(guess, 2)


class Estimate(NamedTuple):
    """What a call is expected to take.

    Attributes:
        input_tokens: of the prompt, as a guess from above.
        output_tokens: that the answer can have at most.
        likely_output: that the answer will probably have.
        bounded: whether `output_tokens` is a real bound: the model's own, a clamp, or the
            catalogue's.
    """

    input_tokens: int
    output_tokens: int
    likely_output: int
    bounded: bool = True


class Learner:
    """Learns from each answer how large the speaker's next prompt will be; at most 8 speakers.

    Example:
        >>> learner = Learner()
        >>> learner.prompt("main", 1000.0)          # nothing known: the guess itself
        1000
        >>> learner.learn("main", 1000.0, input_tokens=700, output_tokens=50)
        >>> learner.prompt("main", 1100.0)          # 700 known, 100 guessed
        800
    """

    __slots__ = ("_known",)

    _CAPACITY = 8

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, int, float, float]] = OrderedDict()

    def prompt(self, speaker: str, guess: float) -> int:
        """Tokens of a prompt that was measured as `guess`."""
        known = self._known.get(speaker)
        if known is None:
            return ceil(guess)
        measured, true = known[:2]
        factor = max(1.0, true / measured) if measured > 0 else 1.0
        if guess >= measured:
            return ceil(true + (guess - measured) * factor)
        whole = guess * factor
        if guess >= 0.75 * measured:  # a note was taken out, or a few messages: most is still there
            whole = min(whole, 1.1 * true + 0.1 * guess)
        return ceil(whole)

    def answer(self, speaker: str, bound: int) -> int:
        """Tokens that the next answer will probably have, at most `bound`."""
        known = self._known.get(speaker)
        return bound if known is None else min(bound, ceil(known[2] * 1.5) + 16)

    def knows(self, speaker: str) -> bool:
        """Whether anything was learnt of a speaker."""
        return speaker in self._known

    def growth(self, speaker: str) -> int:
        """Tokens by which the speaker's prompt usually grows from call to call."""
        known = self._known.get(speaker)
        return 0 if known is None else ceil(known[3])

    def learn(self, speaker: str, guess: float, input_tokens: int, output_tokens: int) -> None:
        """What the provider counted for a prompt that was measured as `guess`."""
        if input_tokens <= 0:
            return
        known = self._known.pop(speaker, None)
        usual = float(output_tokens) if known is None else max(output_tokens, known[2] * 0.8)
        grown = 0.0 if known is None else max(input_tokens - known[1], known[3] * 0.8)
        self._known[speaker] = (guess, input_tokens, usual, grown)
        if len(self._known) > self._CAPACITY:
            self._known.popitem(last=False)

    def dump(self) -> list[object]:
        """The state as JSON-ready data."""
        return [
            [name, round(guess, 1), true, round(usual, 1), round(grown, 1)]
            for name, (guess, true, usual, grown) in self._known.items()
        ]

    def load(self, data: object) -> None:
        """Restore what `dump` gave."""
        rows = cast("list[tuple[str, float, int, float, float]]", data)
        self._known = OrderedDict((row[0], (row[1], row[2], row[3], row[4])) for row in rows)
