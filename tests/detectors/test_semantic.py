"""semantic_oscillation: thoughts that are one thought, and calls that bring nothing."""

from __future__ import annotations

import json

import pytest

from shearpin.core.detectors import SemanticOscillations
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.embedding import HashedEmbedder
from shearpin.errors import ConfigError
from shearpin.events import ThoughtEmbedded
from shearpin.findings import Severity
from shearpin.verdicts import Nudge, Verdict
from tests.core.driving import Call, Driver, finding_of

SAME = {
    "en": [
        "I should check the file config.py again.",
        "I should check the file config.py once again.",
        "I should check the file config.py again now.",
        "Again I should check the file config.py.",
        "I should check again the file config.py.",
        "I should now check the file config.py again.",
    ],
    "zh": [
        "我需要再次检查配置文件config.py的内容。",
        "我需要再检查配置文件config.py的内容。",
        "我需要再次检查一下配置文件config.py的内容。",
        "我现在需要再次检查配置文件config.py的内容。",
        "再次，我需要检查配置文件config.py的内容。",
        "我需要再次检查配置文件config.py的内容了。",
    ],
}
OTHER = [
    "The test fails because the index is off by one.",
    "Let me see who calls this function.",
    "Now I write the missing branch.",
    "All tests pass; I still want to update the docs.",
    "The changelog needs a line as well.",
    "Done, here is a summary of the work.",
]


def think(driver: Driver, thoughts: list[str], stale: bool) -> list[Verdict]:
    embedder = HashedEmbedder()
    out: list[Verdict] = []
    for n, (thought, vector) in enumerate(zip(thoughts, embedder.embed(thoughts), strict=True), 1):
        result = "[]" if stale else f"new fact number {n}"
        out += driver.step(Call("search", {"q": f"{n}"}, result), text=thought)
        out.append(driver.session.after(ThoughtEmbedded(driver.at, "main", vector)))
    return [verdict for verdict in out if isinstance(verdict, Nudge)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_thought_in_many_words_is_told(language: str) -> None:
    (nudge, *_) = think(Driver(SemanticOscillations()), SAME[language], stale=True)
    finding = finding_of(nudge)
    assert (finding.family, finding.rule) == ("paraphrase", "semantic_oscillation")
    assert not finding.hard
    assert float(str(finding.evidence["dispersion"])) < 0.12


def test_the_same_words_with_new_results_are_left_alone() -> None:
    assert not think(Driver(SemanticOscillations()), SAME["en"], stale=False)


def test_different_thoughts_with_stale_results_are_left_alone() -> None:
    assert not think(Driver(SemanticOscillations()), OTHER, stale=True)


def test_without_vectors_nothing_happens_and_it_is_off_by_default() -> None:
    driver = Driver(SemanticOscillations())
    assert not [v for n in range(9) for v in driver.step(Call("s", {"n": n}, "[]"), text="again")]
    assert "semantic_oscillation" not in Driver().session._probes


def test_the_ceiling_holds() -> None:
    assert not think(Driver(SemanticOscillations(ceiling=Severity.NONE)), SAME["en"], stale=True)


def test_state_is_exact_and_small() -> None:
    settings = Settings(detectors=(SemanticOscillations(),))
    driver = Driver(SemanticOscillations())
    think(driver, SAME["en"][:4], stale=True)
    data = json.loads(json.dumps(driver.session.dump()))
    assert len(json.dumps(data)) < 2000
    again = Session.load(settings, data)
    assert again.dump() == data
    driver.session = again
    assert think(driver, SAME["en"][4:], stale=True)


def test_a_broken_vector_is_contained() -> None:
    driver = Driver(SemanticOscillations())
    driver.session.after(ThoughtEmbedded(1.0, "main", ["no", "numbers"]))  # type: ignore[list-item]
    driver.session.after(ThoughtEmbedded(2.0, "main", []))
    assert len(driver.faults) == 1


def test_numbers_out_of_range_are_refused() -> None:
    for wrong in ({"window": 2}, {"floor": 0}, {"stale": 9}):
        with pytest.raises(ConfigError):
            SemanticOscillations(**wrong)  # type: ignore[arg-type]
