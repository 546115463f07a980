"""chanting: prose that repeats itself in a stream, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from shearpin.core.chanting import Chant, Chants
from shearpin.errors import ConfigError

BLOCK = "Wait, I must look at the file again to be quite sure. "


def chants(text: str, size: int = 7, **more: Any) -> list[Chant]:
    probe = Chants(**more).probe()
    found = (probe.feed(text[at : at + size]) for at in range(0, len(text), size))
    return [chant for chant in found if chant]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize(
    "block", [BLOCK, "我需要再看一遍这个文件，确认它是否正确。还是再看一次吧。"]
)
def test_a_block_over_and_over_is_found(block: str, size: int) -> None:
    (first, *_) = chants("I begin with something else. " + block * 40, size)
    assert first.period == len(block)
    assert first.laps >= 5
    assert abs(first.onset - 29) <= 4


def test_it_is_found_early() -> None:
    probe = Chants().probe()
    fed = 0
    while probe.feed(BLOCK[:27]) is None and probe.feed(BLOCK[27:]) is None:
        fed += len(BLOCK)
        assert fed < 1000


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Step {n}: I look at file {n} and then I report. " for n in range(99)),
        "| a name | a value |\n" * 99,
        "----------------------------------------\n" * 99,
        "= * = * = * = * = * = * = * = * = *\n" * 99,
        "```\n" + "print('the same line of a program')\n" * 99 + "```\n",
        BLOCK * 4,
        "col\tcol\tcol\tcol\n" * 99,
        "",
    ],
)
def test_lists_tables_dividers_and_code_are_left_alone(text: str) -> None:
    assert not chants(text)


def test_prose_after_a_code_block_counts_again() -> None:
    assert chants("```\nx = 1\n```\n" + BLOCK * 40)


def test_memory_stays_bounded() -> None:
    probe = Chants().probe()
    for n in range(2000):
        probe.feed(f"sentence number {n} of a very long answer. ")
    assert len(probe._text) <= 6000


@pytest.mark.parametrize(
    "wrong", [{"laps": 2}, {"least_characters": 10}, {"longest_block": 0}, {"letters": 2}]
)
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Chants(**wrong)
