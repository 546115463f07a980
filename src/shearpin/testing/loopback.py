"""A provider on loopback that speaks HTTP like OpenAI and Anthropic, and plays a script of faults.

Contract: it listens on 127.0.0.1 on a free port, as long as its `with` block lasts, and needs
nothing but the standard library. Requests are answered in the order in which they come in. Whatever
goes wrong in the server itself is raised where the block ends, so that no test passes on it.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, TypeAlias, cast

from langchain_core.messages import AIMessage

from shearpin.errors import ConfigError
from shearpin.testing.faults import Fault, Refusal
from shearpin.testing.wire import Anthropic, Body, OpenAI, Reply, WireFlavour, reply_of

__all__ = ["LoopbackProvider", "Played", "PlayedScript", "ProviderRequest"]

Played: TypeAlias = "AIMessage | str | Fault"
"""One exchange: an answer, or what goes wrong."""


class ProviderRequest(NamedTuple):
    """A request that was received.

    Attributes:
        number: from 1, in the order of arrival.
        flavour: whose protocol it is in.
        streamed: whether the answer was to be streamed.
        body: what was sent.
        headers: names in lower case.
    """

    number: int
    flavour: WireFlavour
    streamed: bool
    body: Mapping[str, Any]
    headers: Mapping[str, str]


PlayedScript: TypeAlias = "Iterable[Played] | Callable[[ProviderRequest], Played]"
"""Exchanges in order, or a function of the request."""


def _check_items(items: Iterable[object]) -> None:
    for item in items:
        if not isinstance(item, (AIMessage, str, Fault)):
            raise ConfigError(
                f"a LoopbackProvider plays texts, AIMessages and Faults, not {item!r}"
            )


class LoopbackProvider:
    """An HTTP server on loopback for the real clients of OpenAI and Anthropic.

    Args:
        script: what is played, one item for each request; see `PlayedScript`.
        then: the answer to every request after the script.
        tells_usage: whether usage is told. With OpenAI's protocol a stream tells it only where the
            client asks for it, as with the real one.

    Raises:
        ConfigError: an item of the script is neither an answer nor a fault.

    Example:
        >>> import json, urllib.request
        >>> with LoopbackProvider(["hello"]) as provider:
        ...     request = urllib.request.Request(
        ...         provider.openai_url + "/chat/completions",
        ...         data=b'{"model": "any", "messages": []}',
        ...     )
        ...     answer = json.load(urllib.request.urlopen(request))
        >>> answer["choices"][0]["message"]["content"]
        'hello'
    """

    def __init__(
        self, script: PlayedScript = (), *, then: Played = "done", tells_usage: bool = True
    ) -> None:
        if isinstance(script, str):
            raise ConfigError(f"a script is a list or a function, not {script!r}; write [answer]")
        items = () if callable(script) else tuple(script)
        _check_items((*items, then))
        self.then = then
        self.tells_usage = tells_usage
        self._function = script if callable(script) else None
        self._script: deque[Played] = deque(items)
        self._requests: list[ProviderRequest] = []
        self._billed: list[list[int]] = []
        self._errors: list[BaseException] = []
        self._lock = Lock()
        self._released = Event()
        self._server: _Server | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> LoopbackProvider:
        self._server = _Server(self)
        self._thread = Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._released.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        if kind is None and self._errors:
            raise self._errors[0]

    @property
    def url(self) -> str:
        """Where it listens: the base URL of Anthropic's client."""
        if self._server is None:
            raise RuntimeError("the provider listens within its `with` block only")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base URL of OpenAI's client."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[ProviderRequest]:
        """All requests, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def billed(self) -> list[tuple[int, int]]:
        """Input and output tokens of each exchange that was not refused, in words."""
        with self._lock:
            return [(into, out) for into, out in self._billed]

    def play(self, *items: Played) -> None:
        """Add to the script."""
        _check_items(items)
        with self._lock:
            self._script.extend(items)

    def release(self) -> None:
        """Let slow answers go, and those that would have been slow from now on."""
        self._released.set()

    def _next(
        self, flavour: WireFlavour, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[ProviderRequest, Played]:
        with self._lock:
            number = len(self._requests) + 1
            streamed = bool(body.get("stream"))
            request = ProviderRequest(number, flavour, streamed, body, headers)
            self._requests.append(request)
            if self._function is None:
                return request, self._script.popleft() if self._script else self.then
        return request, self._function(request)

    def _bill(self, reply: Reply) -> list[int]:
        bill = [reply.input_tokens, 0]
        with self._lock:
            self._billed.append(bill)
        return bill

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._errors.append(error)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: LoopbackProvider) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients may leave in the middle; anything else is a fault of the server."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            self.provider._fail(error)  # pyright: ignore[reportPrivateUsage]


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        flavours: dict[str, WireFlavour] = {"completions": "openai", "messages": "anthropic"}
        flavour = flavours.get(self.path.partition("?")[0].rpartition("/")[2])
        if flavour is None:
            self._json(OpenAI.refusal(Refusal(404, "not_found", f"no {self.path} here")), 404)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        provider = self.server.provider
        request, item = provider._next(flavour, json.loads(sent), headers)  # pyright: ignore[reportPrivateUsage]
        fault = item if isinstance(item, Fault) else Fault("answer", answer=item)
        self._play(request, fault)

    def _play(self, request: ProviderRequest, fault: Fault) -> None:
        refusal = fault.openai if request.flavour == "openai" else fault.anthropic
        if fault.how == "slow":
            self.server.provider._released.wait()  # pyright: ignore[reportPrivateUsage]
        if refusal is not None and (fault.how == "refuse" or not request.streamed):
            self._refuse(request, refusal, fault)
            return
        finish = None if fault.finish is None else fault.finish[request.flavour == "anthropic"]
        reply = reply_of(fault.answer, request.body, finish)
        bill = self.server.provider._bill(reply)  # pyright: ignore[reportPrivateUsage]
        if request.streamed:
            self._stream(request, reply, fault, bill)
        else:
            bill[1] = reply.output_tokens
            self._whole(request, reply, fault)

    def _refuse(self, request: ProviderRequest, refusal: Refusal, fault: Fault) -> None:
        wire = OpenAI if request.flavour == "openai" else Anthropic
        self._json(wire.refusal(refusal), refusal.status, fault.headers)

    def _whole(self, request: ProviderRequest, reply: Reply, fault: Fault) -> None:
        model, number = request.body.get("model"), request.number
        if request.flavour == "openai":
            usage = self.server.provider.tells_usage
            body = OpenAI.body(reply, model, number, usage=usage)
        else:
            body = Anthropic.body(reply, model, number)
        payload = json.dumps(body).encode()
        half = len(payload) // 2
        if fault.how == "truncate":
            self._begin(200, "application/json", half, fault.headers)
            self.wfile.write(payload[:half])
            return
        self._begin(200, "application/json", len(payload), fault.headers)
        if fault.how in ("cut", "reset"):
            self.wfile.write(payload[:half])
            self._leave(reset=fault.how == "reset")
            return
        self.wfile.write(payload)

    def _stream(
        self, request: ProviderRequest, reply: Reply, fault: Fault, bill: list[int]
    ) -> None:
        self._begin(200, "text/event-stream", None, fault.headers)
        sent = 0
        for event in self._events(request, reply):
            if fault.how != "answer" and fault.how != "slow" and sent == fault.after:
                self._break_off(request, event, fault)
                return
            self._event(event, named=request.flavour == "anthropic")
            if _is_piece(event):
                sent += 1
                bill[1] = min(bill[1] + 1, reply.output_tokens)
        bill[1] = reply.output_tokens
        if request.flavour == "openai":
            self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _events(self, request: ProviderRequest, reply: Reply) -> Iterator[Body]:
        model, number = request.body.get("model"), request.number
        tells = self.server.provider.tells_usage
        if request.flavour == "anthropic":
            return Anthropic.events(reply, model, number, usage=tells)
        options = cast("Mapping[str, object]", request.body.get("stream_options") or {})
        asked = bool(options.get("include_usage"))
        return OpenAI.events(reply, model, number, usage=tells and asked)

    def _break_off(self, request: ProviderRequest, event: Body, fault: Fault) -> None:
        if fault.how == "fail_in_stream":
            refusal = fault.openai if request.flavour == "openai" else fault.anthropic
            wire = OpenAI if request.flavour == "openai" else Anthropic
            failure = {"type": "error", **wire.refusal(cast("Refusal", refusal))}
            self._event(failure, named=request.flavour == "anthropic")
        elif fault.how == "truncate":
            text = json.dumps(event)
            self._chunk(f"data: {text[: len(text) // 2]}\n\n")
        else:
            self._leave(reset=fault.how == "reset")
            return
        self.wfile.write(b"0\r\n\r\n")

    # -- HTTP ---------------------------------------------------------------------------------

    def _json(
        self, body: Body, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        payload = json.dumps(body).encode()
        self._begin(status, "application/json", len(payload), headers or {})
        self.wfile.write(payload)

    def _begin(
        self, status: int, kind: str, length: int | None, headers: Mapping[str, str]
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _event(self, data: Body, *, named: bool) -> None:
        name = f"event: {data['type']}\n" if named else ""
        self._chunk(f"{name}data: {json.dumps(data)}\n\n")

    def _chunk(self, text: str) -> None:
        payload = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
        self.wfile.flush()

    def _leave(self, *, reset: bool) -> None:
        """Close the connection in the middle; with a linger of zero the peer gets an RST."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


def _is_piece(event: Body) -> bool:
    """Whether an event carries a piece of the answer, and not a frame around it."""
    choices = event.get("choices")
    if isinstance(choices, list) and choices:
        return bool(cast("list[dict[str, object]]", choices)[0].get("delta"))
    return event.get("type") == "content_block_delta"
