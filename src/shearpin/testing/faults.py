"""What can go wrong in an exchange with a provider, as data.

Contract: a fault says what happens, in the words and with the status of the provider that is asked;
the server only plays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from langchain_core.messages import AIMessage

__all__ = ["Fault", "Refusal"]

_How: TypeAlias = Literal["refuse", "cut", "reset", "truncate", "slow", "fail_in_stream", "answer"]


@dataclass(frozen=True)
class Refusal:
    """An answer that is an error.

    Attributes:
        status: of the response.
        type: the provider's type of the error.
        message: for people.
        code: the provider's code, where it has one.
    """

    status: int
    type: str
    message: str
    code: str | None = None


@dataclass(frozen=True)
class Fault:
    """What happens instead of a good answer; made by one of the methods below.

    Attributes:
        how: what the server does.
        openai: its error as OpenAI words it.
        anthropic: its error as Anthropic words it.
        headers: further headers of the response.
        after: pieces of a streamed answer that are sent before it happens.
        answer: what is answered after all.
        finish: the reason that ends an answer, for OpenAI and for Anthropic.

    Example:
        >>> Fault.rate_limit(retry_after=2).headers["Retry-After"]
        '2'
    """

    how: _How
    openai: Refusal | None = None
    anthropic: Refusal | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    after: int = 3
    answer: AIMessage | str = ""
    finish: tuple[str, str] | None = None

    @classmethod
    def rate_limit(
        cls, retry_after: float | str | None = None, headers: Mapping[str, str] | None = None
    ) -> Fault:
        """Too many requests (429).

        Args:
            retry_after: seconds, or a date as text. None: the provider does not say.
            headers: further ones, e.g. `x-ratelimit-reset-tokens`.
        """
        return cls(
            "refuse",
            Refusal(429, "requests", "Rate limit reached for requests", "rate_limit_exceeded"),
            Refusal(429, "rate_limit_error", "This request would exceed your rate limit."),
            {**_waiting(retry_after), **(headers or {})},
        )

    @classmethod
    def insufficient_quota(cls) -> Fault:
        """The account is used up: 429 at OpenAI, 400 at Anthropic."""
        return cls(
            "refuse",
            Refusal(
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
            ),
            Refusal(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
                "Billing to upgrade or purchase credits.",
            ),
        )

    @classmethod
    def overloaded(cls, retry_after: float | str | None = None) -> Fault:
        """The provider has too much to do: 503 at OpenAI, 529 at Anthropic."""
        return cls(
            "refuse",
            Refusal(503, "server_error", "The engine is currently overloaded.", None),
            Refusal(529, "overloaded_error", "Overloaded"),
            _waiting(retry_after),
        )

    @classmethod
    def status(
        cls, status: int, message: str = "scripted", headers: Mapping[str, str] | None = None
    ) -> Fault:
        """Any status, with the type that the provider gives it."""
        mine = _OPENAI_TYPES.get(status, "server_error" if status >= 500 else _INVALID)
        theirs = _ANTHROPIC_TYPES.get(status, "api_error" if status >= 500 else _INVALID)
        code = {401: "invalid_api_key", 404: "model_not_found"}.get(status)
        return cls(
            "refuse",
            Refusal(status, mine, message, code),
            Refusal(status, theirs, message),
            dict(headers or {}),
        )

    @classmethod
    def unauthorized(cls) -> Fault:
        """The key is wrong (401)."""
        return cls(
            "refuse",
            Refusal(401, _INVALID, "Incorrect API key provided: none.", "invalid_api_key"),
            Refusal(401, "authentication_error", "invalid x-api-key"),
        )

    @classmethod
    def context_length_exceeded(cls) -> Fault:
        """The request is too long (400)."""
        return cls(
            "refuse",
            Refusal(
                400,
                _INVALID,
                "This model's maximum context length is 128000 tokens. However, your messages "
                "resulted in 140000 tokens. Please reduce the length of the messages.",
                "context_length_exceeded",
            ),
            Refusal(400, _INVALID, "prompt is too long: 208310 tokens > 200000 maximum"),
        )

    @classmethod
    def prompt_filtered(cls) -> Fault:
        """The request is refused for its content (400)."""
        return cls(
            "refuse",
            Refusal(
                400,
                _INVALID,
                "The response was filtered due to the prompt triggering the content management "
                "policy.",
                "content_filter",
            ),
            Refusal(400, _INVALID, "Output blocked by content filtering policy"),
        )

    @classmethod
    def content_filter(cls, text: str = "") -> Fault:
        """An answer that the provider's filter ends: `content_filter`, `refusal`."""
        return cls("answer", answer=text, finish=("content_filter", "refusal"))

    @classmethod
    def empty(cls) -> Fault:
        """A proper answer with nothing in it."""
        return cls("answer")

    @classmethod
    def truncated_json(cls, answer: AIMessage | str = "never to be read") -> Fault:
        """An answer whose JSON breaks off, although the response is complete."""
        return cls("truncate", answer=answer)

    @classmethod
    def cut(cls, after: int = 3, answer: AIMessage | str = "one two three four five six") -> Fault:
        """The connection is closed in the middle of the answer."""
        return cls("cut", after=after, answer=answer)

    @classmethod
    def reset(
        cls, after: int = 3, answer: AIMessage | str = "one two three four five six"
    ) -> Fault:
        """The connection is reset (RST) in the middle of the answer."""
        return cls("reset", after=after, answer=answer)

    @classmethod
    def fails_in_stream(
        cls, after: int = 3, answer: AIMessage | str = "one two three four five six"
    ) -> Fault:
        """An error event in a stream that began well; without streaming an overloaded provider."""
        overloaded = cls.overloaded()
        return cls(
            "fail_in_stream", overloaded.openai, overloaded.anthropic, after=after, answer=answer
        )

    @classmethod
    def slow(cls, answer: AIMessage | str = "at last") -> Fault:
        """No answer until `LoopbackProvider.release` is called: the client's timeout runs out."""
        return cls("slow", answer=answer)


_INVALID = "invalid_request_error"
_OPENAI_TYPES = {429: "requests", 401: _INVALID, 403: _INVALID, 404: _INVALID}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _waiting(retry_after: float | str | None) -> dict[str, str]:
    return {} if retry_after is None else {"Retry-After": str(retry_after)}
