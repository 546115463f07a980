"""Calls through real clients to a server on loopback: each raises what its client makes of it."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from shearpin.testing import Fault, LoopbackProvider
from tests.boundary.answering import Answering, nobody

Raises = Callable[[Answering], object]
"""Makes the call; its exception is what is looked at."""


def patience(leaves: str | None) -> float:
    """Seconds for a client to wait: few only for an answer that never comes."""
    return 0.2 if leaves == "silent" else 30.0


def module(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


def said(
    server: Answering,
    status: int,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    leaves: str | None = None,
) -> str:
    return nobody() if leaves == "refused" else server.says(status, body, headers, leaves)


# -- HTTP clients -----------------------------------------------------------------------------


def by_httpx(status: int = 200, name: str = "httpx", **answer: Any) -> Raises:
    def raises(server: Answering) -> None:
        httpx: ModuleType = module(name)
        url = answer.pop("url", None) or said(server, status, **answer)
        with httpx.Client(timeout=patience(answer.get("leaves")), trust_env=False) as client:
            response = client.get(url)
        response.raise_for_status()
        response.json()

    return raises


def by_requests(status: int = 200, **answer: Any) -> Raises:
    def raises(server: Answering) -> None:
        requests = module("requests")
        url = answer.pop("url", None) or said(server, status, **answer)
        with requests.Session() as session:
            session.trust_env = False
            response = session.get(url, timeout=patience(answer.get("leaves")))
            response.raise_for_status()
            response.json()

    return raises


def by_aiohttp(status: int = 200, **answer: Any) -> Raises:
    def raises(server: Answering) -> None:
        aiohttp = module("aiohttp")

        async def get() -> None:
            url = answer.pop("url", None) or said(server, status, **answer)
            timeout = aiohttp.ClientTimeout(sock_read=patience(answer.get("leaves")))
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as told:
                told.raise_for_status()
                await told.json()

        asyncio.run(get())

    return raises


def by_urllib(status: int = 200, **answer: Any) -> Raises:
    def raises(server: Answering) -> None:
        url = answer.pop("url", None) or said(server, status, **answer)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=patience(answer.get("leaves"))) as response:
            response.read()

    return raises


# -- model providers --------------------------------------------------------------------------


def by_openai(fault: Fault, *, streams: bool = False) -> Raises:
    def raises(server: Answering) -> None:
        openai = module("openai")
        with LoopbackProvider([fault]) as provider:
            client = openai.OpenAI(
                base_url=provider.openai_url,
                api_key="none",
                max_retries=0,
                timeout=patience("silent" if fault.how == "slow" else None),
            )
            messages = [{"role": "user", "content": "hi"}]
            with client:
                answer = client.chat.completions.create(
                    model="gpt-4o-mini", messages=messages, stream=streams
                )
                list(answer)

    return raises


def by_anthropic(fault: Fault, *, streams: bool = False) -> Raises:
    def raises(server: Answering) -> None:
        anthropic = module("anthropic")
        with LoopbackProvider([fault]) as provider:
            client = anthropic.Anthropic(
                base_url=provider.url,
                api_key="none",
                max_retries=0,
                timeout=patience("silent" if fault.how == "slow" else None),
            )
            messages = [{"role": "user", "content": "hi"}]
            with client:
                answer = client.messages.create(
                    model="claude-haiku-4-5", max_tokens=9, messages=messages, stream=streams
                )
                list(answer)

    return raises


def by_chat_openai(fault: Fault, *, streams: bool = False) -> Raises:
    def raises(server: Answering) -> None:
        chat = module("langchain_openai").ChatOpenAI
        with LoopbackProvider([fault]) as provider:
            model = chat(
                model="gpt-4o-mini",
                base_url=provider.openai_url,
                api_key="none",
                max_retries=0,
                timeout=patience("silent" if fault.how == "slow" else None),
            )
            list(model.stream("hi")) if streams else model.invoke("hi")

    return raises


def by_chat_anthropic(fault: Fault, *, streams: bool = False) -> Raises:
    def raises(server: Answering) -> None:
        chat = module("langchain_anthropic").ChatAnthropic
        with LoopbackProvider([fault]) as provider:
            model = chat(
                model="claude-haiku-4-5",
                base_url=provider.url,
                api_key="none",
                max_retries=0,
                max_tokens=9,
                timeout=patience("silent" if fault.how == "slow" else None),
            )
            list(model.stream("hi")) if streams else model.invoke("hi")

    return raises


def google_error(code: int, status: str, message: str = "no", *details: object) -> object:
    error = {"code": code, "message": message, "status": status, "details": list(details)}
    return {"error": error}


def by_genai(status: int = 200, body: object = None, leaves: str | None = None) -> Raises:
    def raises(server: Answering) -> None:
        genai = module("google.genai")
        url = said(server, status, body, None, leaves)
        options = genai.types.HttpOptions(
            base_url=url,
            timeout=int(patience(leaves) * 1000),
            retry_options=genai.types.HttpRetryOptions(attempts=1),
        )
        client = genai.Client(api_key="none", http_options=options)
        client.models.generate_content(model="gemini-2.0-flash", contents="hi")

    return raises


def by_chat_google(status: int, body: object) -> Raises:
    def raises(server: Answering) -> None:
        chat = module("langchain_google_genai").ChatGoogleGenerativeAI
        url = said(server, status, body)
        chat(model="gemini-2.0-flash", api_key="none", base_url=url, max_retries=1).invoke("hi")

    return raises


def by_mistral(
    status: int = 200,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    leaves: str | None = None,
) -> Raises:
    def raises(server: Answering) -> None:
        mistral = module("mistralai.client").Mistral
        url = said(server, status, body or {"message": "no"}, headers, leaves)
        with mistral(
            api_key="none", server_url=url, timeout_ms=int(patience(leaves) * 1000)
        ) as client:
            client.chat.complete(model="m", messages=[{"role": "user", "content": "hi"}])

    return raises


def by_bedrock(code: str, status: int, message: str = "no", leaves: str | None = None) -> Raises:
    def ask(client: Any) -> None:
        client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])

    headers = {"x-amzn-ErrorType": code}
    return _by_aws("bedrock-runtime", headers, status, {"message": message}, leaves, ask)


def by_dynamo(code: str) -> Raises:
    def ask(client: Any) -> None:
        client.get_item(TableName="t", Key={"a": {"S": "b"}})

    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}
    return _by_aws("dynamodb", {}, 400, body, None, ask)


def _by_aws(
    service: str,
    headers: Mapping[str, str],
    status: int,
    body: object,
    leaves: str | None,
    ask: Callable[[Any], None],
) -> Raises:
    def raises(server: Answering) -> None:
        session = module("botocore.session").Session()
        config = module("botocore.config").Config(
            retries={"max_attempts": 0, "mode": "standard"},
            read_timeout=patience(leaves),
            proxies={},
        )
        client = session.create_client(
            service,
            region_name="us-east-1",
            endpoint_url=said(server, status, body, headers, leaves),
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=config,
        )
        try:
            ask(client)
        finally:
            client.close()

    return raises
