"""The loop probability: bounded, explained, higher where a run repeats itself."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from shearpin.analysis.risk import FEATURES, RiskModel, features_of, shipped_model
from shearpin.cli import main
from shearpin.traces import parse_run


def step(name: str, args: object, result: str, text: str = "") -> dict[str, object]:
    return {"text": text, "calls": [{"name": name, "args": args, "result": result}]}


SAME = [step("search", {"q": "x"}, "nothing of use")] * 10
WORK = [step("edit_file", {"path": f"m{n}.py"}, f"{n} lines changed") for n in range(10)]
calls = st.builds(
    step,
    st.sampled_from(["search", "edit", "bash"]),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
    st.sampled_from(["", "[]", "Error: no", "done", "7 rows"]),
    st.sampled_from(["", "I look into the file again now."]),
)


def test_a_loop_scores_high_and_work_scores_low() -> None:
    model = shipped_model()
    looping = model.scores(parse_run({"run": "r", "steps": SAME}))
    working = model.scores(parse_run({"run": "r", "steps": WORK}))
    assert looping[-1] > 0.9
    assert max(working) < 0.2
    assert looping == sorted(looping)


def test_the_shipped_model_is_whole_and_reports_its_training() -> None:
    model = shipped_model()
    assert set(model.weights) == set(FEATURES)
    assert all(weight >= 0 for weight in model.weights.values())
    import shearpin.analysis.risk as module

    data = json.loads(Path(module.__file__).with_name("risk.json").read_text(encoding="utf-8"))
    assert data["training"]["auc_held_out"] > 0.9


@given(st.lists(st.one_of(calls, st.just({"text": "Hello there, what now?"})), max_size=20))
def test_features_are_shares_for_every_step(steps: list[dict[str, object]]) -> None:
    found = features_of(parse_run({"run": "r", "steps": steps}))
    assert len(found) == len(steps)
    for features in found:
        assert len(features) == len(FEATURES)
        assert all(0 <= value <= 1 for value in features)


def test_each_sign_raises_the_score() -> None:
    model = RiskModel(-3.0, dict.fromkeys(FEATURES, 1.0))
    calm = model.score([0.0] * len(FEATURES))
    for place in range(len(FEATURES)):
        signs = [float(place == other) for other in range(len(FEATURES))]
        assert model.score(signs) > calm
    assert 0 < RiskModel(1e9, dict.fromkeys(FEATURES, 0.0)).score([0.0] * len(FEATURES)) <= 1


def test_replay_adds_the_risk_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"run": "r", "steps": SAME}) + '\n{"run": "e", "steps": []}\n')
    shown = CliRunner().invoke(main, ["replay", str(path), "--json", "--risk"])
    first, second = map(json.loads, shown.output.splitlines())
    assert first["risk"]["peak"] > 0.9
    assert second["risk"] == {"peak": 0.0, "step": None}
    plain = CliRunner().invoke(main, ["replay", str(path), "--json"])
    assert "risk" not in json.loads(plain.output.splitlines()[0])
