"""Sessions in a store: any function that saves and loads them may fail, and no run notices."""

from __future__ import annotations

import dataclasses
from types import CodeType
from typing import Any

import pytest

import shearpin
from shearpin.stores import MemoryStore
from tests.hosts.injector import calls_of, fault_in
from tests.hosts.test_faults import EXHIBITS, SHELLS, quiet, seen_of, take
from tests.zoo.observe import settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # A fault at the very entry of a thread's work is one of the interpreter: nobody waits for it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
assert quiet  # the fixture: faults are logged, and thousands of them need not be
# These contain: a fault at their very entry is one of the interpreter.
CONTAIN = SHELLS | {
    "adapters.langgraph.sessions:SessionKeeper.save",
    "adapters.langgraph.sessions:SessionKeeper.asave",
}
WHERE = ("sessions", "stores", "bounded_waits", "voyage")


class Blocking(MemoryStore):
    """Is asked aside, like a file."""

    blocking = True


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize(("kind", "nth"), [(MemoryStore, 1), (MemoryStore, 2), (Blocking, 1)])
def test_any_function_of_a_session_store_may_fail(kind: Any, how: str, nth: int) -> None:
    exhibit = dataclasses.replace(EXHIBITS["agent"], turns=EXHIBITS["agent"].turns[:1])
    plain = exhibit.build()
    expected = seen_of(exhibit, plain, take(exhibit, plain, how))

    def guarded() -> Any:
        return shearpin.guard(exhibit.build(), state=kind(), save_every=1)

    codes: dict[str, CodeType] = {}
    app = guarded()
    with calls_of(codes):
        take(exhibit, app, how)
    broken = {name: code for name, code in codes.items() if any(it in name for it in WHERE)}
    assert len(broken) > 20
    hurt: list[str] = []
    unreported: list[str] = []
    for function, code in broken.items():
        if function in CONTAIN:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shearpin.adapters.langgraph.sessions.PATIENCE_SECONDS", 0.2)
            app = guarded()
            with fault_in(code, nth) as fired:
                given = take(exhibit, app, how)
        if seen_of(exhibit, app, given) != expected:
            hurt.append(function)
        elif fired and not app.report(settings(exhibit)).faults:
            unreported.append(function)
    assert (hurt, unreported) == ([], [])
