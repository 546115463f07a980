"""Work on a Ray cluster comes out as in one process. Needs the extra `ray`; else only the error."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from shearpin import ConfigError
from shearpin.analysis.fleet import evaluate, pieces
from shearpin.core.settings import Settings
from shearpin.errors import TraceError

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    call = {"name": "ls", "args": {}, "result": "a.txt and nothing else"}
    runs = [
        {"run": f"s/{n}", "outcome": "fail", "steps": [{"calls": [call]}] * (n % 9)}
        for n in range(60)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return path


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_the_error_says_what_to_install(traces: Path) -> None:
    with pytest.raises(ConfigError, match="pip install ray"):
        evaluate(pieces([traces]), [Settings()], {}, ray="local")


@pytest.mark.skipif(not HAS_RAY, reason="needs the extra `ray`")
@pytest.mark.filterwarnings("ignore")
def test_a_local_cluster_changes_nothing(traces: Path, tmp_path: Path) -> None:
    settings = [Settings(), Settings(patience=0.0), Settings(patience=1.0)]
    alone = evaluate(pieces([traces], size=2000), settings, {})
    spread = evaluate(pieces([traces], size=2000), settings, {}, ray="local")
    assert alone == spread
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    with pytest.raises(TraceError, match=r"bad\.jsonl:1"):
        evaluate(pieces([bad]), settings, {}, ray="local")
