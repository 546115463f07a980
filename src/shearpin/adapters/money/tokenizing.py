"""Exact token counts for OpenAI's models, where tiktoken has the vocabulary on this machine.

Contract: nothing is ever downloaded. A vocabulary is used if the process has loaded it already, or
if its file, whole and unchanged, lies in the folder that `TIKTOKEN_CACHE_DIR` (or, as tiktoken has
it, `DATA_GYM_CACHE_DIR`) names; the first use then takes about half a second, once per process. In
all other cases, and for all other providers, prompts are guessed as `core.estimate` says.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

__all__ = ["LONGEST", "Counter", "counter_for"]

Counter: TypeAlias = Callable[[str], float]
"""Tokens of a text."""

LONGEST: Final = 400_000
"""Characters above which a text is guessed: counting takes time that grows with its length."""

_FOLDERS: Final = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_PROVIDERS: Final = ("openai", "azure")
_SHA_256: Final = re.compile("[0-9a-f]{64}")


@lru_cache(maxsize=64)
def counter_for(provider: str | None, model: str | None, guess: Counter) -> Counter | None:
    """What counts the tokens of a model's prompts exactly; None where nothing can.

    Args:
        provider: LangChain's name of the provider.
        model: its name.
        guess: what measures texts that are too long to be counted.
    """
    if model is None or not (provider or "").startswith(_PROVIDERS):
        return None
    if "tiktoken" not in sys.modules and not _folder():
        return None
    try:
        encoding = _encoding(model)
    except Exception:  # whatever is wrong with it, there is the guess
        return None
    if encoding is None:
        return None

    def count(text: str) -> float:
        if len(text) > LONGEST:
            return guess(text)
        try:
            return float(len(encoding.encode_ordinary(text)))
        except Exception:  # odd texts, for which it has limits of its own
            return guess(text)

    return count


def _folder() -> Path | None:
    for name in _FOLDERS:
        value = os.environ.get(name)
        if value:
            return Path(value)
    return None


def _encoding(model: str) -> Any:
    """The vocabulary of a model, if it is here."""
    tiktoken: Any = import_module("tiktoken")
    try:
        name: str = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    loaded = cast("Mapping[str, Any]", import_module("tiktoken.registry").ENCODINGS)
    if name in loaded:
        return loaded[name]
    folder = _folder()
    if folder is None:
        return None
    makers: Any = import_module("tiktoken_ext.openai_public")
    return tiktoken.get_encoding(name) if _is_here(getattr(makers, name), folder) else None


def _is_here(maker: Any, folder: Path) -> bool:
    """Whether the one file that a vocabulary is made of lies in a folder, whole and unchanged.

    tiktoken names a file by the digest of where it comes from, and would fetch one that is missing
    or changed; both the origin and the file's digest stand in the code that loads it.
    """
    said = [each for each in maker.__code__.co_consts if isinstance(each, str)]
    origins = [each for each in said if "://" in each]
    digests = [each for each in said if _SHA_256.fullmatch(each)]
    if len(origins) != 1 or len(digests) != 1:
        return False
    file = folder / hashlib.sha1(origins[0].encode()).hexdigest()
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digests[0]
