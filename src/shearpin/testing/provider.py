"""A provider that is as strict as the real ones, so that a test sees what production would."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

from langchain_core.messages import BaseMessage

from shearpin.testing.model import ScriptedModel
from shearpin.testing.rules import Flavour, broken_rules

__all__ = ["ProviderRejectedError", "StrictProvider", "complaints"]


class ProviderRejectedError(Exception):
    """The request is not valid: what a provider answers with status 400.

    With `flavour="openai"` or `"anthropic"`, and that provider's SDK installed, it is a
    `BadRequestError` of that SDK as well, with the provider's own wording and body, and a
    `ModelInvalidRequestError` of LangChain's where it has one: what LangChain's integration raises.

    Attributes:
        status_code: always 400, under the name that provider clients use.
        complaints: everything that is wrong with the request.
    """

    status_code = 400

    def __init__(self, complaints: Sequence[str]) -> None:
        if isinstance(complaints, str):  # an SDK's own constructor has put it into words
            super().__init__(complaints)
            self.complaints = [complaints]
        else:
            super().__init__("400 invalid_request_error: " + "; ".join(complaints))
            self.complaints = list(complaints)

    def __reduce__(self) -> tuple[type[ProviderRejectedError], tuple[list[str]]]:
        return (ProviderRejectedError, (self.complaints,))


class StrictProvider(ScriptedModel):
    """A scripted model that refuses what OpenAI and Anthropic refuse.

    Args:
        flavour: whose rules, and whose kind of error: `openai` or `anthropic`. `any` (default)
            takes both rule books, so that what passes here passes there.

    Raises:
        ProviderRejectedError: when called, if the request breaks a rule. A refused request is not
            counted as a call.

    *Source*: the providers' answers as quoted in public reports, and the requests that
    `langchain-openai` and `langchain-anthropic` make of LangChain's messages. An empty system
    message, which deepagents sends where it is given no prompt, is refused by Anthropic
    (JetBrains/koog issue 716, t8y2/dbx pull 1298) and accepted by OpenAI; so is a tool-call id
    that comes again in a later answer.

    Example:
        >>> from langchain_core.messages import HumanMessage, ToolMessage
        >>> model = StrictProvider(["hello"])
        >>> model.invoke([HumanMessage("hi"), ToolMessage("4", tool_call_id="c1")])
        Traceback (most recent call last):
        ...
        shearpin.testing.provider.ProviderRejectedError: 400 invalid_request_error: messages.1: \
tool result 'c1' answers no tool call of the message before it
    """

    flavour: Flavour = "any"

    def _check(self, messages: Sequence[BaseMessage]) -> None:
        found = list(broken_rules(messages, self.flavour))
        if found:
            spoken = found[0].said(self.flavour)
            raise _rejection(self.flavour, [str(complaint) for complaint in found], spoken)


def complaints(messages: Sequence[BaseMessage], flavour: Flavour = "any") -> Iterator[str]:
    """What is wrong with a request, one sentence each; nothing where it would be accepted."""
    return (str(complaint) for complaint in broken_rules(messages, flavour))


def _rejection(flavour: Flavour, found: list[str], spoken: str) -> ProviderRejectedError:
    """The error that the provider's own client would raise; ours where that is not installed."""
    kind = _kind(flavour)
    if kind is None:
        return ProviderRejectedError(found)
    detail: dict[str, object] = {"type": "invalid_request_error", "message": spoken}
    if flavour == "openai":
        detail |= {"param": None, "code": None}
        whole: dict[str, object] = {"error": detail}
    else:
        whole = {"type": "error", "error": detail}
    error = cast("Any", kind)(
        f"Error code: 400 - {whole}",
        response=_response(flavour, whole),
        body=detail if flavour == "openai" else whole,
    )
    error.complaints = found
    return error


@lru_cache(maxsize=2)
def _kind(flavour: Flavour) -> type[ProviderRejectedError] | None:
    """A class that is our error and the SDK's; None where there is no SDK to be like."""
    try:
        sdk: Any = import_module(flavour)
    except ImportError:
        return None
    invalid = getattr(import_module("langchain_core.exceptions"), "ModelInvalidRequestError", None)
    theirs = sdk.BadRequestError
    bases = (theirs, ProviderRejectedError, *((invalid,) if invalid is not None else ()))
    body: dict[str, object] = {
        "__module__": __name__,
        "__doc__": ProviderRejectedError.__doc__,
        "__init__": theirs.__init__,
        "__reduce__": ProviderRejectedError.__reduce__,
    }
    return cast("Any", type)("BadRequestError", bases, body)


def _response(flavour: Flavour, whole: dict[str, object]) -> object:
    """A response with status 400 of the HTTP client that the SDK is built on."""
    sdk: Any = import_module(flavour)
    client = cast("type", sdk.DefaultHttpxClient.__mro__[1])
    http: Any = sys.modules[client.__module__.partition(".")[0]]
    request = http.Request("POST", f"https://{flavour}.invalid/v1")
    return http.Response(400, request=request, json=whole)
