"""The world of the chaos run: a task for each run, a model that works on it, tools, and faults.

Everything is drawn from the seed, the number of the task and the number of the exchange within it,
so that the arms of a comparison meet the same tasks and, as long as they do the same, the same
faults.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from threading import Lock
from typing import Any

import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, UsageMetadata, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from shearpin.testing import Fault, ProviderRequest, asks_for
from shearpin.testing.faults import Refusal

RESEARCHER = "You are the researcher."
TASK = re.compile(r"task:(\d+)")
GOOD = "ok:"
SOON = {"retry-after-ms": "1"}
CUT_OFF = Fault("answer", answer="half a sen", finish=("length", "max_tokens"))
MODEL_FAULTS: tuple[tuple[str, Fault, int], ...] = (
    ("rate limit", replace(Fault.rate_limit(), headers=SOON), 6),
    ("overloaded", replace(Fault.overloaded(), headers=SOON), 4),
    ("server error", Fault.status(500, headers=SOON), 4),
    ("connection cut", Fault.cut(), 2),
    ("connection reset", Fault.reset(), 2),
    ("truncated JSON", Fault.truncated_json(), 2),
    ("empty answer", Fault.empty(), 2),
    ("content filter", Fault.content_filter(), 1),
    ("cut off by length", CUT_OFF, 2),
    ("too long", Fault.context_length_exceeded(), 1),
    ("wrong key", Fault.unauthorized(), 1),
    ("quota", Fault.insufficient_quota(), 1),
)
TOOL_FAULTS = (
    ("timeout", 4),
    ("refused", 3),
    ("rate limit", 3),
    ("unavailable", 3),
    ("bad data", 3),
    ("forbidden", 1),
    ("bug", 1),
)


@dataclass
class Task:
    """How far a task has come, as the model knows it."""

    rounds: list[list[tuple[str, dict[str, str]]]]
    at: int = 0
    asked: Counter[str] = field(default_factory=Counter[str])


class World:
    """One arm's side of the world.

    Args:
        seed: of everything.
        rate: share of exchanges that are faulty.
    """

    def __init__(self, seed: int, rate: float) -> None:
        self.seed, self.rate = seed, rate
        self.sent: Counter[int] = Counter()
        self.exchanges: Counter[str] = Counter()
        self.faulty: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self._draws: Counter[tuple[int, str]] = Counter()
        self._tasks: dict[tuple[int, str], Task] = {}
        self._lock = Lock()

    def draw(self, task: int, where: str) -> Random | None:
        """One exchange; a source of randomness where it is to be faulty."""
        with self._lock:
            self._draws[task, where] += 1
            number = self._draws[task, where]
            self.exchanges[where.partition(" ")[0]] += 1
            chance = Random(f"{self.seed}:{task}:{where}:{number}")
            if chance.random() >= self.rate:
                return None
            self.faulty[where.partition(" ")[0]] += 1
            return chance

    # -- the model ------------------------------------------------------------------------------

    def answer(self, request: ProviderRequest) -> AIMessage | str | Fault:
        """What the provider does about a request; what it does not refuse is paid for."""
        played = self._answer(request)
        if not (isinstance(played, Fault) and played.how == "refuse"):
            said = played.answer if isinstance(played, Fault) else played
            calls = said.tool_calls if isinstance(said, AIMessage) else []
            with self._lock:
                self.tokens["in"] += tokens_of(request.body["messages"])
                self.tokens["out"] += tokens_of([str(getattr(said, "content", said)), calls])
        return played

    def _answer(self, request: ProviderRequest) -> AIMessage | str | Fault:
        body = json.dumps(request.body)
        found = TASK.findall(json.dumps(request.body["messages"]))
        task = int(found[0]) if found else -1
        if _orphans(request.body["messages"]):
            return Fault.status(400, "tool_calls must be followed by tool messages")
        chance = self.draw(task, "model")
        if chance is not None:
            faults = [fault for _, fault, _ in MODEL_FAULTS]
            return chance.choices(faults, [weight for *_, weight in MODEL_FAULTS])[0]
        if not request.body.get("tools"):
            if "too much failed" in body:
                return f"partial answer to task:{task}"
            if "ontext" in body and "ummar" in body:
                return f"So far: task:{task} is under way."
            return f"partial answer to task:{task}"
        if RESEARCHER in body:
            return self._research(task, request.body["messages"])
        return self._work(task, request.body["messages"])

    def _research(self, task: int, messages: Sequence[Mapping[str, Any]]) -> AIMessage | str:
        results = _results(messages)
        if not results:
            return asks_for(("lookup", {"key": f"task:{task} within"}))
        return f"{GOOD} researched task:{task}"

    def _work(self, task: int, messages: Sequence[Mapping[str, Any]]) -> AIMessage | str:
        with self._lock:
            known = self._tasks.setdefault((task, "main"), Task(_plan(self.seed, task)))
            again: list[tuple[str, dict[str, str]]] = []
            for name, args, content in _results(messages):
                key = f"{name}{args}"
                patience = 2 if name == "send_email" else 1
                if GOOD not in content and known.asked[key] < patience:
                    known.asked[key] += 1
                    again.append((name, args))
            if again:
                return asks_for(*again)
            if known.at < len(known.rounds):
                known.at += 1
                return asks_for(*known.rounds[known.at - 1])
        return f"answer to task:{task}"


def _plan(seed: int, task: int) -> list[list[tuple[str, dict[str, str]]]]:
    """Rounds of one to three calls; one of them sends an e-mail, one asks the researcher."""
    chance = Random(f"plan:{seed}:{task}")
    rounds: list[list[tuple[str, dict[str, str]]]] = []
    for number in range(chance.randint(3, 5)):
        reads = [
            chance.choice(
                [
                    ("search", {"query": f"task:{task} {number}.{index}"}),
                    ("lookup", {"key": f"task:{task} {number}.{index}"}),
                    ("fetch", {"page": f"task:{task} {number}.{index}"}),
                ]
            )
            for index in range(chance.randint(1, 3))
        ]
        rounds.append(reads)
    chance.choice(rounds).append(
        ("send_email", {"to": f"task:{task}@example.org", "text": "hello"})
    )
    chance.choice(rounds).append(("delegate", {"topic": f"task:{task}"}))
    return rounds


def _results(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, str], str]]:
    """The calls that were answered last, and their answers, in either provider's form."""
    calls: dict[str, tuple[str, dict[str, str]]] = {}
    answers: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "assistant":
            calls, answers = {}, []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                calls[call["id"]] = function["name"], json.loads(function["arguments"])
            for block in _blocks(message):
                if block.get("type") == "tool_use":
                    calls[block["id"]] = block["name"], block["input"]
        elif message["role"] == "tool":
            answers.append((message["tool_call_id"], str(message["content"])))
        else:
            for block in _blocks(message):
                if block.get("type") == "tool_result":
                    answers.append((block["tool_use_id"], json.dumps(block.get("content"))))
    return [(*calls[call], content) for call, content in answers if call in calls]


def _orphans(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call has no answer before the next message of the model or the user."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
            continue
        waiting -= {
            block["tool_use_id"] for block in _blocks(message) if block.get("type") == "tool_result"
        }
        if waiting:
            return True
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
        waiting |= {b["id"] for b in _blocks(message) if b.get("type") == "tool_use"}
    return bool(waiting)


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


# -- tools ----------------------------------------------------------------------------------------


def tools_of(world: World, researcher: Any) -> list[BaseTool]:
    """Five tools; the researcher is an agent of its own."""

    def used(name: str, text: str) -> int:
        task = int(TASK.findall(text)[0])
        chance = world.draw(task, f"{name} {text}")
        if chance is not None:
            _fail(world, name, task, chance)
        return task

    @tool
    def search(query: str) -> str:
        """Search the archive."""
        return f"{GOOD} found {query} in case {used('search', query)}"

    @tool
    def lookup(key: str) -> str:
        """Look a key up."""
        return f"{GOOD} {key} is known in case {used('lookup', key)}"

    @tool
    def fetch(page: str) -> str:
        """Fetch a page."""
        return f"{GOOD} page {page} of case {used('fetch', page)}. " + "Lorem ipsum. " * 20

    @tool
    def send_email(to: str, text: str) -> str:
        """Send an e-mail."""
        task = used("send_email", to)
        world.sent[task] += 1
        return f"{GOOD} sent to {to}"

    @tool
    def delegate(topic: str) -> str:
        """Ask the researcher."""
        used("delegate", topic)
        out = researcher.invoke({"messages": [("user", topic)]})
        return str(out["messages"][-1].text)

    return [search, lookup, fetch, send_email, delegate]


def lookup_of(world: World) -> list[BaseTool]:
    """The one tool of the researcher."""
    return [one for one in tools_of(world, None) if one.name == "lookup"]


def _fail(world: World, name: str, task: int, chance: Random) -> None:
    kind = chance.choices([kind for kind, _ in TOOL_FAULTS], [weight for _, weight in TOOL_FAULTS])[
        0
    ]
    request = httpx.Request("POST", f"http://127.0.0.1/{name}")
    if kind == "timeout":
        if name == "send_email" and chance.random() < 0.5:
            world.sent[task] += 1  # it was done, and nobody was told
        raise TimeoutError("no answer within 10 seconds")
    if kind == "refused":
        raise ConnectionRefusedError("connection refused")
    if kind in ("rate limit", "unavailable"):
        status = 429 if kind == "rate limit" else 503
        response = httpx.Response(status, request=request, headers={"retry-after": "1"})
        raise httpx.HTTPStatusError(f"{status} {kind}", request=request, response=response)
    if kind == "bad data":
        raise ValueError("the record cannot be read")
    if kind == "forbidden":
        raise PermissionError("not allowed")
    raise KeyError("owner")


# -- a model without HTTP -------------------------------------------------------------------------


class InProcessModel(BaseChatModel):
    """The same provider without HTTP and without a client: faults as the client would raise them.

    Args:
        world: that it is part of.
        flavour: whose errors it raises.
    """

    world: Any
    flavour: str = "openai"

    @property
    def _llm_type(self) -> str:
        return "in-process"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kw: Any) -> Any:
        body = {"messages": convert_to_openai_messages(messages), "tools": kw.get("tools")}
        played = self.world.answer(ProviderRequest(0, "openai", False, body, {}))
        if isinstance(played, Fault):
            played = _as_raised(played, self.flavour)
        if isinstance(played, Exception):
            raise played
        message = AIMessage(played) if isinstance(played, str) else played
        into, out = tokens_of(body["messages"]), tokens_of(message.content)
        usage = UsageMetadata(input_tokens=into, output_tokens=out, total_tokens=into + out)
        message = message.model_copy(update={"usage_metadata": usage})
        return ChatResult(generations=[ChatGeneration(message=message)])


def tokens_of(said: object) -> int:
    """A rough count of tokens."""
    return len(json.dumps(said)) // 4


def _as_raised(fault: Fault, flavour: str) -> Any:
    refusal = fault.openai if flavour == "openai" else fault.anthropic
    if refusal is not None:
        return _status_error(refusal, fault, flavour)
    if fault.how == "truncate":
        return json.JSONDecodeError("Unterminated string", "{", 1)
    if fault.how in ("cut", "reset"):
        return httpx.RemoteProtocolError("peer closed connection")
    finish = (fault.finish or ("stop", "end_turn"))[0]
    return AIMessage(str(fault.answer), response_metadata={"finish_reason": finish})


def _status_error(refusal: Refusal, fault: Fault, flavour: str) -> Exception:
    kind = {"message": refusal.message, "type": refusal.type, "code": refusal.code}
    request = httpx.Request("POST", "http://127.0.0.1/v1")
    response = httpx.Response(
        refusal.status, request=request, json={"error": kind}, headers=dict(fault.headers)
    )
    return _client(flavour)._make_status_error_from_response(response)


@lru_cache(maxsize=2)
def _client(flavour: str) -> Any:
    import anthropic
    import openai

    kind: Any = openai.OpenAI if flavour == "openai" else anthropic.Anthropic
    return kind(api_key="none")
