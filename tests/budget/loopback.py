"""A provider on loopback that speaks like OpenAI and Anthropic, and counts what it is paid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


class Provider(ThreadingHTTPServer):
    """Answers every request with `words` words, or as `faults` says first.

    Attributes:
        faults: statuses to answer the next requests with, or `cut` to break a stream off.
        tells_usage: whether usage is told.
        requests: bodies of all requests.
        billed: pairs of input and output tokens: words of the prompt, words sent.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.words = 20
        self.faults: list[int | str] = []
        self.tells_usage = True
        self.requests: list[dict[str, Any]] = []
        self.billed: list[list[int]] = []
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def tokens(self) -> int:
        return sum(into + out for into, out in self.billed)


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        provider = self.server
        with provider.lock:
            provider.requests.append(body)
            fault = provider.faults.pop(0) if provider.faults else None
        if isinstance(fault, int):
            self._json({"error": {"message": "scripted", "type": "scripted"}}, fault)
            return
        into = len(json.dumps(body["messages"]).split()) + 5
        bound = body.get("max_tokens") or body.get("max_completion_tokens") or 10**9
        out = min(provider.words, bound)
        words = [f"word{number} " for number in range(out)]
        bill = [into, 0]
        with provider.lock:
            provider.billed.append(bill)
        stream = self._openai if self.path.endswith("/chat/completions") else self._anthropic
        stream(body, words, bill, cut=fault == "cut")

    # -- OpenAI -------------------------------------------------------------------------------

    def _openai(self, body: dict[str, Any], words: list[str], bill: list[int], cut: bool) -> None:
        usage = {
            "prompt_tokens": bill[0],
            "completion_tokens": len(words),
            "total_tokens": bill[0] + len(words),
        }
        base = {"id": "c1", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            bill[1] = len(words)
            message = {"role": "assistant", "content": "".join(words)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            told = {"usage": usage} if self.server.tells_usage else {}
            self._json({**base, "object": "chat.completion", "choices": [choice], **told})
            return
        self._begin()
        for word in words:
            bill[1] += 1
            delta = {"index": 0, "delta": {"role": "assistant", "content": word}}
            self._event({**base, "object": "chat.completion.chunk", "choices": [delta]})
            if cut and bill[1] == 5:
                self.close_connection = True
                return
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._event({**base, "object": "chat.completion.chunk", "choices": [end]})
        if self.server.tells_usage and (body.get("stream_options") or {}).get("include_usage"):
            self._event({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        self._write("data: [DONE]\n\n")
        self._end()

    # -- Anthropic ----------------------------------------------------------------------------

    def _anthropic(
        self, body: dict[str, Any], words: list[str], bill: list[int], cut: bool
    ) -> None:
        message: dict[str, Any] = {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "stop_sequence": None,
        }
        if not body.get("stream"):
            bill[1] = len(words)
            usage = {"input_tokens": bill[0], "output_tokens": len(words)}
            text = [{"type": "text", "text": "".join(words)}]
            self._json({**message, "content": text, "stop_reason": "end_turn", "usage": usage})
            return
        self._begin()
        start = {"input_tokens": bill[0], "output_tokens": 1}
        opening = {**message, "content": [], "stop_reason": None, "usage": start}
        self._event({"type": "message_start", "message": opening}, named=True)
        block = {"type": "text", "text": ""}
        self._event({"type": "content_block_start", "index": 0, "content_block": block}, named=True)
        for word in words:
            bill[1] += 1
            delta = {"type": "text_delta", "text": word}
            self._event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)
            if cut and bill[1] == 5:
                self.close_connection = True
                return
        self._event({"type": "content_block_stop", "index": 0}, named=True)
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        told = {"output_tokens": len(words)}
        if self.server.tells_usage:
            told["input_tokens"] = bill[0]
        self._event({"type": "message_delta", "delta": end, "usage": told}, named=True)
        self._event({"type": "message_stop"}, named=True)
        self._end()

    # -- HTTP ---------------------------------------------------------------------------------

    def _json(self, data: dict[str, Any], status: int = 200) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status == 429:
            self.send_header("Retry-After-Ms", "1")
        self.end_headers()
        self.wfile.write(payload)

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, data: dict[str, Any], *, named: bool = False) -> None:
        name = f"event: {data['type']}\n" if named else ""
        self._write(f"{name}data: {json.dumps(data)}\n\n")

    def _write(self, text: str) -> None:
        payload = text.encode()
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(payload), payload))
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _end(self) -> None:
        try:
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider, as long as the block lasts."""
    provider = Provider()
    thread = Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        provider.server_close()
        thread.join()
