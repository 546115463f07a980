"""Guesses of prompt sizes are high, and learn."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shearpin.core.estimate import Learner, rates_of, text_tokens

# Tokens in o200k_base and cl100k_base, counted once; the larger of the two.
COUNTED = {
    "prose": ("The quick brown fox jumps over the lazy dog. " * 20, 201),
    "chinese": ("请使用提供给你的工具的准确名称，或者不用工具直接回答。" * 10, 270),
    "russian": ("Привет, это обычный русский текст, который описывает задачу агента. " * 10, 270),
    "emoji": ("😀🎉🚀🔥🤖" * 40, 560),
    "digits": ("0123456789" * 30, 100),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_ordinary_text_is_guessed_high_but_not_wildly(kind: str) -> None:
    text, true = COUNTED[kind]
    assert 0.8 * true <= text_tokens(text) <= 4.5 * true


def test_random_bytes_in_base64_are_not_taken_for_prose() -> None:
    blob = base64.b64encode(random.Random(3).randbytes(3000)).decode()
    assert text_tokens(blob) >= len(blob) / 1.5
    assert text_tokens("word " * 800) < 1700


def test_more_text_is_never_fewer_tokens() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    sizes = [text_tokens(source[:end]) for end in range(0, len(source), 97)]
    assert sizes == sorted(sizes)


@given(st.text())
def test_any_text_can_be_measured(text: str) -> None:
    assert 0 <= text_tokens(text) <= 4 * len(text.encode("utf-8", "replace")) + 1


@pytest.mark.parametrize(
    ("provider", "image"),
    [("openai", 1_600), ("google_genai", 1_300), ("anthropic", 1_650), ("aws_bedrock", 1_650),
     (None, 1_650), ("", 1_650), ("unheard-of", 1_650)],
)  # fmt: skip
def test_providers(provider: str | None, image: int) -> None:
    assert rates_of(provider).image == image


def test_the_first_prompt_is_guessed_and_the_next_is_known_but_for_what_is_new() -> None:
    learner = Learner()
    assert learner.prompt("main", 1000.2) == 1001
    learner.learn("main", 1000.0, input_tokens=600, output_tokens=40)
    assert learner.prompt("main", 1000.0) == 600
    assert learner.prompt("main", 1300.0) == 900
    assert learner.prompt("other", 1300.0) == 1300


def test_a_guess_that_was_too_low_is_corrected_for_what_is_new() -> None:
    learner = Learner()
    learner.learn("main", 100.0, input_tokens=200, output_tokens=5)
    assert learner.prompt("main", 150.0) == 300


def test_a_cut_history_is_measured_anew() -> None:
    learner = Learner()
    learner.learn("main", 1000.0, input_tokens=600, output_tokens=40)
    assert learner.prompt("main", 400.0) == 400
    learner.learn("main", 100.0, input_tokens=200, output_tokens=5)
    assert learner.prompt("main", 50.0) == 100


def test_a_note_that_was_taken_out_does_not_make_all_unknown() -> None:
    learner = Learner()
    learner.learn("main", 1000.0, input_tokens=400, output_tokens=40)
    assert learner.prompt("main", 950.0) == 535
    assert learner.prompt("main", 740.0) == 740


def test_likely_answers_and_growth() -> None:
    learner = Learner()
    assert learner.answer("main", 500) == 500
    assert learner.growth("main") == 0
    learner.learn("main", 100.0, input_tokens=100, output_tokens=100)
    assert learner.answer("main", 500) == 166
    assert learner.answer("main", 50) == 50
    learner.learn("main", 150.0, input_tokens=180, output_tokens=10)
    assert learner.growth("main") == 80
    assert learner.answer("main", 500) == 136, "large answers are forgotten slowly"
    learner.learn("main", 150.0, input_tokens=0, output_tokens=10)
    assert learner.prompt("main", 150.0) == 180, "a report without input teaches nothing"


def test_memory_is_bounded_and_survives() -> None:
    learner = Learner()
    for number in range(40):
        learner.learn(f"agent-{number}", 10.0 * number + 1, number + 1, 1)
    data = json.loads(json.dumps(learner.dump()))
    assert len(data) == 8
    again = Learner()
    again.load(data)
    assert again.dump() == learner.dump()
    assert again.prompt("agent-39", 391.0) == 40
