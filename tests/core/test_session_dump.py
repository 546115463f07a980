"""Dump and load: exact inverses, at most 4 KB, no text of the run, and checked when read."""

from __future__ import annotations

import copy
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shearpin.core.detectors import Repeats
from shearpin.core.seen import Seen, ToolSeen
from shearpin.core.session import Session
from shearpin.core.settings import Settings
from shearpin.core.stored import pack, unpack
from shearpin.errors import ConfigError
from shearpin.events import (
    ModelCalled,
    ModelReturned,
    NodeLeft,
    SignalReceived,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    TurnStarted,
    Usage,
)
from shearpin.verdicts import Halt
from tests.core.driving import Call, Driver
from tests.core.streams import STEPS, essence, feed, weave

LIMIT = 4096


def written(session: Session) -> str:
    return json.dumps(session.dump(), separators=(",", ":"), ensure_ascii=False)


def reloaded(session: Session) -> Session:
    return Session.load(session.settings, json.loads(written(session)))


@given(STEPS, st.data())
@settings(max_examples=200, deadline=None)
def test_a_loaded_session_goes_on_like_the_one_that_was_dumped(
    steps: list[tuple[object, ...]], data: st.DataObject
) -> None:
    items = weave(steps)
    cut = data.draw(st.integers(0, len(items)))
    one = Session(Settings())
    feed(one, items[:cut])
    other = reloaded(one)
    assert other.dump() == one.dump()
    for item in items[cut:]:
        ahead, behind = feed(one, [item])[0], feed(other, [item])[0]
        assert essence(ahead) == essence(behind)
    assert other.dump() == one.dump()
    assert (other.state, other.step, other.spend) == (one.state, one.step, one.spend)
    assert (other.worst, other.active) == (one.worst, one.active)
    assert (other.stopped is None) == (one.stopped is None)


@given(STEPS)
@settings(max_examples=50, deadline=None)
def test_a_session_that_is_reloaded_all_the_time_goes_on_alike(
    steps: list[tuple[object, ...]],
) -> None:
    steady = Session(Settings())
    restless = Session(Settings())
    for item in weave(steps):
        given_, other = feed(steady, [item])[0], feed(restless, [item])[0]
        assert essence(given_) == essence(other)
        restless = reloaded(restless)
    assert restless.dump() == steady.dump()


def test_a_stop_survives_with_its_finding_and_words() -> None:
    driver = Driver()
    driver.steps(9, Call())
    halt = driver.session.stopped
    assert isinstance(halt, Halt)
    assert halt.finding is not None
    other = reloaded(driver.session)
    assert other.stopped is not None
    assert other.stopped.finding is not None
    assert essence(other.stopped) == essence(halt)
    assert other.stopped.message == halt.message
    assert other.before(ModelCalled(99, "m99")) is other.stopped
    assert other.state == "open"


def test_a_loaded_session_still_ends_a_run_in_its_last_trials() -> None:
    """The loop that is being tried is remembered, else nobody would end it."""
    one = Driver()
    while one.session.state != "half_open":
        one.step(Call())
    one.session = reloaded(one.session)
    for _ in range(30):
        one.step(Call())
        if one.session.stopped:
            break
    assert one.session.stopped is not None


def wild(session: Session, count: int, *, tools: int, agents: int, letters: int, seed: int) -> int:
    """Many steps with everything in them; the largest dump on the way, in characters."""
    draw = random.Random(seed)
    names = [f"tool_{n}_" + "".join(draw.choices("abcdef", k=letters)) for n in range(tools)]
    people = [f"agent_{n}_" + "".join(draw.choices("abcdef", k=letters)) for n in range(agents)]
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
    results = [
        ("fine, here it is", "success"),
        ("Error: no such file 'x'", "error"),
        ("Error: 503 service unavailable", "error"),
        ("[]", "success"),
        ("it is not a valid tool", "unknown_tool"),
        ("arguments could not be parsed", "bad_args"),
    ]
    largest = 0
    ids = 0
    for n in range(count):
        at = n * 7.25
        agent = draw.choice(people)
        requests = []
        for _ in range(draw.choice([0, 1, 1, 2, 5])):
            ids += 1
            args = {"command": f"{draw.choice(words)}{draw.randrange(4)}", "n": draw.randrange(30)}
            requests.append(ToolRequest(f"call-{ids}", draw.choice(names), args))
        text = " ".join(draw.choices(words, k=draw.choice([0, 5, 30])))
        session.before(ModelCalled(at, f"model-{n}", agent))
        usage = Usage(draw.randrange(10**6), draw.randrange(10**5))
        session.after(
            ModelReturned(at, f"model-{n}", agent, text=text, requests=tuple(requests), usage=usage)
        )
        for asked in requests:
            session.before(ToolCalled(at, asked.id, asked.name, asked.args, agent))
            if n % 97 == 5:
                largest = max(largest, len(written(session)))
        for asked in requests:
            result, status = draw.choice([*results, (f"fresh {ids} {draw.random()}", "success")])
            session.after(ToolReturned(at, asked.id, asked.name, asked.args, result, status, agent))
        session.after(NodeLeft(at, f"node{n % 9}_" + "x" * letters, f"t{n}", agent, str(n % 5)))
        if session.stopped is not None and draw.random() < 0.3:
            session.after(SignalReceived(at, "continue"))
        if session.stopped is not None and draw.random() < 0.05:
            session.after(TurnStarted(at, n))
        if n % 31 == 0:
            largest = max(largest, len(written(session)))
    return max(largest, len(written(session)))


@pytest.mark.parametrize(
    ("count", "tools", "agents", "letters"),
    [(10_000, 30, 4, 8), (1_500, 200, 60, 60), (1_500, 300, 2_000, 400)],
    ids=["long", "wide", "endless names"],
)
def test_a_dump_stays_small(count: int, tools: int, agents: int, letters: int) -> None:
    session = Session(Settings())
    largest = wild(session, count, tools=tools, agents=agents, letters=letters, seed=1)
    assert largest <= LIMIT
    assert reloaded(session).dump() == session.dump()


def test_memory_is_bounded_with_thousands_of_agents() -> None:
    session = Session(Settings())
    for n in range(5_000):
        session.before(ModelCalled(n, f"m{n}", f"agent{n}"))
        session.after(
            ModelReturned(n, f"m{n}", f"agent{n}", requests=(ToolRequest(f"c{n}", "t", {"n": n}),))
        )
        session.before(ToolCalled(n, f"c{n}", "t", {"n": n}, f"agent{n}"))
    for name, value in {**vars(session), **vars(session._observer)}.items():
        if hasattr(value, "__len__"):
            assert len(value) <= 256, name


MARKERS = [f"Zq{n}xMARKER" for n in range(8)]


def test_a_dump_holds_no_text_of_the_run() -> None:
    """Arguments, commands, results, prose: only names and digests are written down."""
    prose, value, command, result, error, word, literal, unknown = MARKERS
    driver = Driver()
    for n in range(14):
        driver.step(text=f"{prose} says the same")
        driver.step(Call("search", {"q": value}, f"{result} was found"))
        driver.step(Call("bash", {"command": f"{command} --{word}"}, f"Error: {error}", "error"))
        driver.step(Call("lookup", {"k": f"{value}{n}"}, f"Error: {error} [{n}]", "error"))
        driver.step(Call("lookup", literal, f"{unknown} could not be parsed", "bad_args"))
        session = driver.session
        for text in (written(session), json.dumps(unpack(session.dump()["memory"]))):
            for marker in MARKERS:
                assert marker not in text
        if session.stopped is not None:
            driver.turn()
            driver.steps(4, Call("search", {"q": value}, f"{result} was found"))


def test_names_of_tools_may_be_written_down() -> None:
    driver = Driver()
    driver.steps(9, Call("find_customer"))
    memory = json.dumps(unpack(driver.session.dump()["memory"]))
    assert "find_customer" in memory


def test_a_dump_is_plain_json_with_a_readable_head() -> None:
    driver = Driver()
    driver.steps(3, Call())
    data = driver.session.dump()
    assert data == json.loads(json.dumps(data))
    assert (data["v"], data["state"], data["step"]) == (1, "reflecting", 3)


def test_a_dump_does_not_change_with_what_comes_after() -> None:
    driver = Driver()
    driver.steps(2, Call())
    data = driver.session.dump()
    kept = copy.deepcopy(data)
    driver.steps(3, Call(), text="more")
    assert data == kept


def test_rules_that_a_dump_does_not_know_start_afresh() -> None:
    driver = Driver()
    driver.steps(2, Call())
    memory = unpack(driver.session.dump()["memory"])
    assert isinstance(memory, list)
    memory[-1] = {"of_another_day": [1, 2, 3]}
    data = {**driver.session.dump(), "memory": pack(memory)}
    driver.session = Session.load(Settings(), data)
    assert driver.session.step == 2
    assert driver.step(Call()) == []


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused_with_a_way_out(version: object) -> None:
    data = {**Session(Settings()).dump(), "v": version}
    with pytest.raises(ConfigError, match=r"version .* start the thread afresh"):
        Session.load(Settings(), data)


@pytest.mark.parametrize("data", [None, [], "x", {}, 7])
def test_what_is_no_dump_is_refused(data: object) -> None:
    with pytest.raises(ConfigError):
        Session.load(Settings(), data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "memory", [None, 5, "", "no base64!", "AAAA", pack([]), pack({}), pack([None] * 10), pack("x")]
)
def test_damage_is_refused(memory: object) -> None:
    data = {**Session(Settings()).dump(), "memory": memory}
    with pytest.raises(ConfigError, match="damaged"):
        Session.load(Settings(), data)


def places(value: object, path: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    """Every place in nested data."""
    found = [path] if path else []
    if isinstance(value, list):
        for n, item in enumerate(value):
            found += places(item, (*path, n))
    elif isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    return found


def test_a_wrong_value_anywhere_is_refused_or_harmless() -> None:
    """No damage makes `load` raise anything else, or gives a session that cannot be used."""
    driver = Driver()
    driver.steps(4, Call(), Call("read_file", {"p": 1}, "x y z"))
    driver.step(text="talk")
    driver.step(Call("lookup", {"k": 1}, "Error: boom", "error"))
    memory = unpack(driver.session.dump()["memory"])
    head = driver.session.dump()
    refused = 0
    for path in places(memory):
        for wrong in (None, "?", -1, 2.5, [], {"a": 1}, True):
            bad = copy.deepcopy(memory)
            inner = bad
            for key in path[:-1]:
                inner = inner[key]  # type: ignore[index]
            inner[path[-1]] = wrong  # type: ignore[index]
            try:
                session = Session.load(Settings(), {**head, "memory": pack(bad)})
            except ConfigError:
                refused += 1
                continue
            again = Driver()
            again.session = session
            again.model_calls = again.tool_calls = 1000
            again.steps(3, Call())
            assert session.dump()
    assert refused > 100


def test_packing_is_an_inverse_and_bounded() -> None:
    for value in (None, [], {"a": [1, 2.5, "é\ud800", True, None]}):
        assert unpack(pack(value)) == value
    with pytest.raises(ValueError, match="too long"):
        unpack(pack("x" * 100_000))
    with pytest.raises(ValueError, match="cut off"):
        unpack(pack(["abc"] * 50)[:-8])


class Greedy:
    """A rule whose state grows with the run."""

    family = "greedy"
    watches = (ToolSeen,)

    def __init__(self) -> None:
        self.kept: list[str] = []

    def probe(self) -> Greedy:
        return self

    def observe(self, seen: Seen) -> None:
        assert isinstance(seen, ToolSeen)
        self.kept.append(seen.result_key)

    def forget(self, agent: str | None) -> None:
        self.kept.clear()

    def dump(self) -> object:
        return list(self.kept)

    def load(self, data: object) -> None:
        assert isinstance(data, list)
        self.kept = list(data)


def test_a_dump_that_grows_too_large_sheds_what_is_widest() -> None:
    driver = Driver(Greedy(), Repeats())
    for n in range(2_000):
        driver.step(Call("search", {"q": n}, str(n)))
    driver.steps(2, Call("search", {"q": "x"}, "y"))
    assert len(written(driver.session)) <= LIMIT
    assert driver.step(Call("search", {"q": "x"}, "y")), "the other rules remember"


class Mute(Greedy):
    """A rule that cannot be kept."""

    family = "mute"

    def dump(self) -> object:
        raise RuntimeError("no")


def test_a_rule_that_cannot_be_kept_costs_the_others_nothing() -> None:
    driver = Driver(Mute(), Repeats(nudge=3))
    driver.steps(2, Call())
    driver.session = reloaded(driver.session)
    assert driver.faults == []
    assert driver.step(Call())
