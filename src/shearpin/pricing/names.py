"""Under which names a model may be found: a short list, most faithful first, and never a guess.

Every candidate is looked up whole. Parts that are known to carry no price are taken off (the
provider's prefix, a date, `-latest`), nothing is ever matched in the middle: `gpt-4` does not find
`gpt-4o`, and `gpt-4.1-mini-tuned` finds nothing. What was taken off is told in the note.

Source: the naming rules of the providers' own documentation, LangChain's `ls_provider` values and
`init_chat_model` prefixes, and LiteLLM's route prefixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LOCAL", "Candidate", "candidates", "provider_id", "spellings"]

LOCAL = "local"
"""The provider of models that run on the user's own machine and cost nothing."""

_PROVIDERS: dict[str, str] = {
    alias: provider
    for provider, aliases in {
        "openai": "openai openai_chat openai_responses openai_codex openai_mantle",
        "azure": "azure azure_openai azureopenai azure_ai azure_text",
        "anthropic": "anthropic",
        "google": "google google_genai google_ai google_vertexai google_vertex"
        " google_anthropic_vertex vertex vertexai vertex_ai vertex_ai_beta gemini",
        "aws": "aws bedrock amazon_bedrock aws_bedrock bedrock_converse anthropic_bedrock"
        " anthropic_mantle",
        "mistral": "mistral mistralai",
        "x-ai": "x_ai xai",
        "deepseek": "deepseek",
        "groq": "groq",
        "cohere": "cohere cohere_chat",
        "fireworks": "fireworks fireworks_ai",
        "together": "together together_ai togetherai",
        "perplexity": "perplexity",
        "openrouter": "openrouter",
        "novita": "novita",
        "cerebras": "cerebras",
        "databricks": "databricks",
        "moonshotai": "moonshotai moonshot moonshot_ai",
        "minimax": "minimax",
        "zai": "zai z_ai",
        "zhipuai": "zhipuai zhipu",
        "cloudflare": "cloudflare",
        "ovhcloud": "ovhcloud",
        "baseten": "baseten",
        "github-copilot": "github_copilot copilot",
        "voyageai": "voyageai voyage",
        "huggingface_fireworks-ai": "huggingface_fireworks_ai",
        "openai-decisions": "openai_decisions",
        LOCAL: "ollama llamacpp llama_cpp gpt4all mlx lmstudio lm_studio",
    }.items()
    for alias in aliases.split()
} | {
    name: name
    for name in (
        "arcee avian cursor doubleword elevenlabs huggingface_cerebras huggingface_groq"
        " huggingface_hyperbolic huggingface_nebius huggingface_novita huggingface_nscale"
        " huggingface_ovhcloud huggingface_publicai huggingface_sambanova huggingface_together"
        " meta modal quicksilverpro typesafe"
    ).split()
}

_TRANSPARENT = {"litellm", "litellm_proxy", "custom_openai"}
_VENDORS = (
    "openai", "anthropic", "google", "mistral", "x-ai", "deepseek", "cohere", "moonshotai",
    "minimax", "zai", "zhipuai", "perplexity",
)  # fmt: skip
_COMPATIBLE = {None, "openai"}
"""Clients of OpenAI's form may point anywhere, so the name decides; others serve what they name."""

_UNMAPPED = re.compile(
    r"^arn:|^https?:|(?:^|/)endpoints/|^tunedmodels/|^projects/(?!.*/publishers/)"
)
_PUBLISHED = re.compile(r"^(?:projects/[^/]+/locations/[^/]+/)?publishers/([^/]+)/models/(.+)$")
_BEDROCK = re.compile(
    r"^(?P<region>(?:us|eu|apac|global|au|jp|ca|in|sa|me|af)\.)?"
    r"(?P<bare>(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot"
    r"|moonshotai|nvidia|openai|qwen|writer|zai)\.[a-z].*)$"
)
_BEDROCK_ROUTE = re.compile(r"^(?:converse|invoke|[a-z]{2}-[a-z]+-\d)/")

_ENDINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r":(?:beta|floor|thinking)$"), "without OpenRouter's variant"),
    (re.compile(r"@(?:default|latest|\d{3}|\d{8})$"), "without Vertex's version"),
    (re.compile(r"-(?:\d{4}-\d\d-\d\d|20\d{6})$"), "without its date"),
    (re.compile(r"(?<=-preview)-(?:\d\d-\d\d|\d\d-\d{4})$"), "without its date"),
    (re.compile(r"(?<=-exp)-(?:\d\d-\d\d|\d\d-\d{4})$"), "without its date"),
    (re.compile(r"(?:(?<=-flash)|(?<=-lite)|(?<=-pro))-\d{3}$"), "without its version"),
    (re.compile(r"-latest$"), "without -latest"),
    (re.compile(r"-preview$"), "without -preview"),
    (re.compile(r"-exp(?:erimental)?$"), "without -exp"),
)
_BEDROCK_ENDINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r":\d+k$"), "without its context size"),
    (re.compile(r":\d+$"), "without Bedrock's version"),
    (re.compile(r"-v\d+$"), "without Bedrock's version"),
    (re.compile(r"-20\d{6}$"), "without its date"),
)
_MOST = 24


class Candidate(NamedTuple):
    """A name to look up whole at one provider, and what was assumed to get there."""

    provider: str
    name: str
    note: str | None = None


def provider_id(provider: str | None) -> str | None:
    """The catalogue's id of a provider by any of its common names; None if it is not known."""
    if provider is None:
        return None
    return _PROVIDERS.get(provider.strip().lower().replace("-", "_").replace(".", "_"))


def candidates(model: str, provider: str | None = None) -> tuple[Candidate, ...]:
    """Where and under which whole names to look for a model's price, most faithful first.

    Args:
        model: the name as the host gives it.
        provider: who serves it, by any common name; None infers it from the name.

    Returns:
        At most 24 candidates. None for ARNs, endpoints and URLs: they have to be mapped.
    """
    name = model.strip().lower()
    if not name or _UNMAPPED.search(name):
        return ()
    found: dict[tuple[str, str], Candidate] = {}
    given = provider_id(provider)
    stranger = provider if given is None else None
    for candidate in _all(name, given):
        if stranger and candidate.provider == "openrouter":
            # Open models cost something else at every reseller, and this one is not known.
            continue
        if stranger:
            said = f"{stranger!r} is no provider of the catalogue; taken by its name"
            note = f"{candidate.note}, {said}" if candidate.note else said
            found.setdefault(candidate[:2], candidate._replace(note=note))
        found.setdefault(candidate[:2], candidate)
        if len(found) == _MOST:
            break
    return tuple(found.values())


def spellings(model: str, provider: str | None = None) -> tuple[str, ...]:
    """How a user may have written this very model: with its provider first, then without."""
    name = model.strip().lower()
    given = provider_id(provider)
    routed, plain = (given, name) if _UNMAPPED.search(name) else _route(name, given)
    found: list[str] = []
    if provider is not None:
        found.append(f"{provider.strip().lower()}/{name}")
    for place in (given, routed):
        if place is not None:
            found += [f"{place}/{name}", f"{place}/{plain}"]
    return tuple(dict.fromkeys([*found, name, plain]))


def _all(name: str, given: str | None) -> Iterator[Candidate]:
    if given is not None:
        yield Candidate(given, name)
    published = _PUBLISHED.match(name)
    if published:
        yield from _forms("google", published[2])
        return
    whole = name.removeprefix("models/")
    routed, name = _route(whole, given)
    if routed == LOCAL:
        yield Candidate(LOCAL, name)
        return
    bedrock = _BEDROCK.match(name) if routed in (None, "openai", "anthropic", "aws") else None
    if bedrock or routed == "aws":
        yield from _bedrock_forms(name, bedrock)
        return
    if routed is not None:
        yield from _forms(routed, name)
    if routed == "azure":
        for form in _forms("openai", name):
            yield form._replace(note="taking the deployment's name for the model's")
    if given in _COMPATIBLE and "/" in whole:
        yield from _forms("openrouter", whole, "as on OpenRouter")
    if routed in _COMPATIBLE and "/" not in name:
        if "@" in name:
            yield from _forms("google", name)
        for vendor in _VENDORS:
            yield from _forms(vendor, name)


def _route(name: str, given: str | None) -> tuple[str | None, str]:
    """Take known route prefixes off: `provider/name`, `provider:name`, several in a row."""
    routed = given
    for _ in range(3):
        if routed == "openrouter":
            return routed, name.removeprefix("openrouter/")
        if routed == "aws":
            return routed, _BEDROCK_ROUTE.sub("", name.removeprefix("bedrock/"))
        head, separator, rest = _head(name)
        if not separator or not rest:
            break
        if head in _TRANSPARENT:
            name = rest
            continue
        prefix = provider_id(head)
        if prefix is None or (routed not in _COMPATIBLE and routed != prefix):
            # A reseller's own name may begin with the vendor's: it is looked up whole.
            break
        routed, name = prefix, rest
    return routed, name


def _head(name: str) -> tuple[str, str, str]:
    slash, colon = name.find("/"), name.find(":")
    if colon > 0 and (slash < 0 or colon < slash):
        return name.partition(":")
    return name.partition("/")


def _forms(provider: str, name: str, note: str | None = None) -> Iterator[Candidate]:
    """The name whole, then without one known ending after the other."""
    if name.startswith("ft:"):
        # A fine-tuned model costs more than its base; never fall back to that.
        base = ":".join(name.split(":")[:2])
        name, note = re.sub(r"-\d{4}$", "", base), "by the base of the fine-tuned model"
    yield Candidate(provider, name, note)
    yield from _shortened(provider, name, note, _ENDINGS)


def _shortened(
    provider: str,
    name: str,
    note: str | None,
    endings: tuple[tuple[re.Pattern[str], str], ...],
) -> Iterator[Candidate]:
    notes = [note] if note else []
    for pattern, said in endings:
        shorter = pattern.sub("", name)
        if shorter == name or not shorter:
            continue
        name = shorter
        if said not in notes:
            notes.append(said)
        yield Candidate(provider, name, ", ".join(notes))


def _bedrock_forms(name: str, match: re.Match[str] | None) -> Iterator[Candidate]:
    """With its region first: regions and the global profile have prices of their own."""
    yield Candidate("aws", name)
    yield from _shortened("aws", name, None, _BEDROCK_ENDINGS)
    if match is None:
        return
    bare = match["bare"]
    if match["region"]:
        yield Candidate("aws", bare, "without the region")
        yield from _shortened("aws", bare, "without the region", _BEDROCK_ENDINGS)
    vendor, _, model = bare.partition(".")
    if vendor != "anthropic":
        return
    yield Candidate("aws", model, "without the vendor")
    yield from _shortened("aws", model, "without the vendor", _BEDROCK_ENDINGS)
    if match["region"] in (None, "global."):
        note = "at the vendor's own price"
        yield Candidate("anthropic", model, note)
        yield from _shortened("anthropic", model, note, _BEDROCK_ENDINGS)
