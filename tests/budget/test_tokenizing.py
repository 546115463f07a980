"""Exact counts where tiktoken has its vocabulary at hand; guesses everywhere else; no download."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from shearpin.adapters.money.prompts import Prompts
from shearpin.adapters.money.tokenizing import LONGEST, counter_for
from shearpin.core.estimate import text_tokens

ORIGIN = "somewhere://vocabulary"
CONTENT = b"the vocabulary"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAME = hashlib.sha1(ORIGIN.encode()).hexdigest()


class Words:
    """A vocabulary in which every word is a token; one word is beyond it."""

    def encode_ordinary(self, text: str) -> list[int]:
        if "odd" in text:
            raise ValueError("cannot be encoded")
        return [0] * len(text.split())


class FakeTiktoken:
    """tiktoken as it is, except that what would be a download is noted."""

    def __init__(self) -> None:
        self.downloads = 0
        self.loads = 0
        self.folder: Path | None = None
        self.registry = ModuleType("tiktoken.registry")
        self.registry.ENCODINGS = {}  # type: ignore[attr-defined]
        self.main = ModuleType("tiktoken")
        self.main.registry = self.registry  # type: ignore[attr-defined]
        self.main.encoding_name_for_model = self.name  # type: ignore[attr-defined]
        self.main.get_encoding = self.get  # type: ignore[attr-defined]
        self.makers = ModuleType("tiktoken_ext.openai_public")
        self.makers.words = maker()  # type: ignore[attr-defined]

    def name(self, model: str) -> str:
        return {"gpt-4o": "words"}[model]

    def get(self, name: str) -> Words:
        file = None if self.folder is None else self.folder / NAME
        if file is None or not file.exists() or file.read_bytes() != CONTENT:
            self.downloads += 1
        self.loads += 1
        return Words()


def maker() -> Callable[[], Any]:
    source = f"def words():\n    return load({ORIGIN!r}, expected_hash={DIGEST!r})\n"
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope["words"]


@pytest.fixture
def tiktoken(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTiktoken]:
    fake = FakeTiktoken()
    for name, module in (
        ("tiktoken", fake.main),
        ("tiktoken.registry", fake.registry),
        ("tiktoken_ext", ModuleType("tiktoken_ext")),
        ("tiktoken_ext.openai_public", fake.makers),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    counter_for.cache_clear()
    yield fake
    counter_for.cache_clear()
    assert fake.downloads == 0


def counted(provider: str | None = "openai", model: str | None = "gpt-4o") -> Any:
    return counter_for(provider, model, text_tokens)


def test_without_its_files_it_is_not_asked(
    tiktoken: FakeTiktoken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counted() is None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counter_for.cache_clear()
    assert counted() is None, "the folder is there, the file is not"
    (tmp_path / NAME).write_bytes(CONTENT + b"!")
    counter_for.cache_clear()
    assert counted() is None, "the file is not what it should be"
    assert tiktoken.loads == 0


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_a_vocabulary_that_is_there_counts(
    tiktoken: FakeTiktoken, tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiktoken.folder = tmp_path
    (tmp_path / NAME).write_bytes(CONTENT)
    monkeypatch.setenv(variable, str(tmp_path))
    count = counted()
    assert count("one two three") == 3.0
    assert count("odd") == text_tokens("odd"), "what it cannot encode is guessed"
    assert count("a " * LONGEST) == text_tokens("a " * LONGEST), "as is what is very long"
    assert counted() is count
    assert tiktoken.loads == 1


def test_a_vocabulary_that_was_loaded_already_counts(tiktoken: FakeTiktoken) -> None:
    vars(tiktoken.registry)["ENCODINGS"]["words"] = Words()
    assert counted()("one two three") == 3.0
    assert tiktoken.loads == 0


@pytest.mark.parametrize(
    ("provider", "model"),
    [("anthropic", "gpt-4o"), (None, "gpt-4o"), ("openai", None), ("openai", "unheard-of")],
)
def test_other_models_are_guessed(
    tiktoken: FakeTiktoken, provider: str | None, model: str | None
) -> None:
    vars(tiktoken.registry)["ENCODINGS"]["words"] = Words()
    assert counted(provider, model) is None


def test_a_tiktoken_that_is_built_in_another_way_is_left_alone(
    tiktoken: FakeTiktoken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for odd in (lambda: None, SimpleNamespace(), None):
        vars(tiktoken.makers)["words"] = odd
        counter_for.cache_clear()
        assert counted() is None
    assert tiktoken.loads == 0


def test_where_tiktoken_is_not_installed_all_is_guessed(
    tiktoken: FakeTiktoken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert counted() is None


def test_prompts_are_measured_with_it(tiktoken: FakeTiktoken) -> None:
    vars(tiktoken.registry)["ENCODINGS"]["words"] = Words()
    messages = [
        SystemMessage("be brief"),
        HumanMessage([{"type": "text", "text": "one two three"}]),
        AIMessage("", tool_calls=[{"name": "f", "args": {"q": "a b"}, "id": "1"}]),
    ]
    tools = [{"name": "f", "description": "looks it up"}]
    exact = Prompts().measure("main", messages, tools, "openai", "gpt-4o")
    # 3 + 5 for each message and call + 2 + 3 + (f, {"q":, "a, b"}) + tools: 5 words and 60
    assert exact == 3 + 4 * 5 + 2 + 3 + 4 + 6 + 60
    assert Prompts().measure("main", messages, tools, "openai", "unheard-of") > exact
    assert Prompts().measure("main", messages, tools, "anthropic", "gpt-4o") > exact


@pytest.mark.skipif(
    not os.environ.get("TIKTOKEN_CACHE_DIR"),
    reason="tiktoken's vocabularies are not on this machine: TIKTOKEN_CACHE_DIR is not set",
)
def test_the_real_one() -> None:
    counter_for.cache_clear()
    count = counter_for("openai", "gpt-4o-2024-11-20", text_tokens)
    assert count is not None
    assert count("The quick brown fox jumps over the lazy dog. " * 20) == 201
    assert count("😀🎉🚀🔥🤖" * 40) < text_tokens("😀🎉🚀🔥🤖" * 40)
