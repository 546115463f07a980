"""What a usage report means: every token once, under the kind it is billed as.

Two questions decide the bill, and reports answer them differently: does the input count include the
cached tokens, and does the output count include the thinking? Where the form leaves it open, the
numbers decide:

* cached tokens above the input count cannot be part of it (proxies report so);
* a total above input plus output holds something that was not listed, and it is billed as output
  (thinking, at Google and xAI).

Nothing here raises: what does not add up is marked, and read so that no token is billed twice.

Source: public reports on langchain (32818), langchain-google (1932) and LiteLLM (9812, 31282).
"""

from __future__ import annotations

from collections.abc import Mapping

from shearpin.pricing.shapes import Reported, reported
from shearpin.pricing.usage import TokenUsage

__all__ = ["read_usage"]


def read_usage(raw: Mapping[str, object] | None, *, estimated: bool = False) -> TokenUsage | None:
    """The usage in a raw report.

    Args:
        raw: `usage_metadata` of a LangChain message, or a provider's own usage object as a mapping.
        estimated: whether the counts are estimates.

    Returns:
        Tokens by kind, each once; None where the report holds no count at all, which is not the
        same as zero.

    Example:
        >>> read_usage({"input_tokens": 9, "cache_read_input_tokens": 500}).prompt_tokens
        509
    """
    if not raw:
        return None
    report = reported(raw)
    if report.inputs is None and report.outputs is None and report.total is None:
        return None
    marks: list[str] = ["invalid_count"] if report.invalid else []
    inputs, outputs = report.inputs or 0, report.outputs or 0
    # The split by duration and the generic count report the same tokens.
    long = report.cache_write_1h
    short = report.cache_write_5m
    short += max(report.cache_write - short - long, 0)
    reasoning = report.reasoning
    if report.thoughts_apart:
        outputs += report.thoughts_apart
        reasoning = report.thoughts_apart
    elif reasoning > outputs and (report.total is None or report.total <= inputs + outputs):
        marks.append("reasoning_exceeds_output")
        outputs += reasoning
    cached = report.cache_read + short + long
    prompt, outputs = _sums(report, inputs, outputs, reasoning, cached, marks)
    text, reasoning, audio_out, image_out = _answer(report, outputs, reasoning, marks)
    audio, audio_cached = _audio(report, prompt, cached, marks)
    return TokenUsage(
        max(prompt - cached - audio, 0),
        report.cache_read - audio_cached,
        short,
        long,
        audio,
        audio_cached,
        0,
        0,
        text,
        reasoning,
        audio_out,
        image_out,
        1,
        report.tools,
        report.service_tier,
        tuple(marks),
        estimated,
    )


def _sums(
    report: Reported, inputs: int, outputs: int, reasoning: int, cached: int, marks: list[str]
) -> tuple[int, int]:
    """The whole prompt and the whole answer, once the total has been heard."""
    hidden = 0 if report.total is None else report.total - inputs - outputs
    apart = report.cache_is_apart
    if not apart and cached and (cached > inputs or (hidden == cached and hidden != reasoning)):
        apart = True
        marks.append("input_excludes_cache")
    prompt = inputs + cached if apart else inputs
    if apart and hidden >= cached:
        hidden -= cached
    if report.tool_prompt:
        prompt += report.tool_prompt
        hidden -= min(report.tool_prompt, max(hidden, 0))
    if hidden > 0:
        marks.append("hidden_output")
        outputs += hidden
    elif hidden < 0 and "reasoning_exceeds_output" not in marks:
        marks.append("total_below_parts")
    return prompt, outputs


def _audio(report: Reported, prompt: int, cached: int, marks: list[str]) -> tuple[int, int]:
    """Audio in the prompt: not from the cache, and from it."""
    audio = report.audio_input
    if not audio:
        return 0, 0
    if audio > prompt:
        marks.append("details_exceed_total")
        audio = prompt
    # Audio and cache may overlap; what does not fit beside each other is cached audio.
    overlap = max(report.audio_cached, audio + cached - prompt, 0)
    overlap = min(overlap, report.cache_read, audio)
    return min(audio - overlap, max(prompt - cached, 0)), overlap


def _answer(
    report: Reported, outputs: int, reasoning: int, marks: list[str]
) -> tuple[int, int, int, int]:
    """Text, thinking, audio and images of the answer."""
    audio, image = report.audio_output, report.image_output
    if reasoning + audio + image > outputs:
        marks.append("details_exceed_total")
        reasoning = min(reasoning, outputs)
        audio = min(audio, outputs - reasoning)
        image = min(image, outputs - reasoning - audio)
    return outputs - reasoning - audio - image, reasoning, audio, image
