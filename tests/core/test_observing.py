"""Only watching: what would have been done is written down once, and nothing after the end."""

from __future__ import annotations

from shearpin.core.journal import VerdictRecord
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.events import ModelReturned, ToolCalled, ToolRequest, ToolReturned


def test_nothing_is_written_down_after_the_run_would_have_ended() -> None:
    session = Session(Settings(mode="observe"))
    for step in range(1, 41):
        asked = ToolRequest(f"c{step}", "search", {"q": "x"})
        session.after(ModelReturned(float(step), f"m{step}", requests=(asked,)))
        session.before(ToolCalled(float(step), asked.id, asked.name, asked.args))
        session.after(ToolReturned(float(step), asked.id, asked.name, asked.args, "the same page"))
    said = [record for record in session.drain() if isinstance(record, VerdictRecord)]
    assert not any(record.acted for record in said)
    halts = [record.step for record in said if record.verdict == "halt"]
    assert len(halts) == 1
    late = [record.verdict for record in said if record.step > halts[0]]
    assert set(late) <= {"nudge"}, "others may still find something; nothing is refused"
    assert len(late) <= 2
