"""The boundary's own words to the model about a failed tool call. English and Chinese.

Contract: one or two sentences: what failed, why, how often it was tried, and what can be done now.
Nothing of a stack trace; details only as they come, masked and short, and none about credentials.
"""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

from typing import Literal

from shearpin.boundary.categories import ErrorCategory

__all__ = ["failure_words", "seconds_words", "substitute_words"]

Language = Literal["en", "zh"]

_LONGEST = 300

_REASONS_ZH = {
    "rate_limit": "请求过于频繁",
    "overloaded": "服务过载",
    "timeout": "超时",
    "network": "网络故障",
    "server_error": "服务端故障",
    "conflict": "冲突",
    "unavailable": "暂不可用",
    "quota": "额度已用完",
    "context_length": "内容过长",
    "content_filter": "内容被过滤",
    "authentication": "身份验证失败",
    "permission": "没有权限",
    "not_found": "未找到",
    "invalid_request": "请求无效",
    "invalid_arguments": "参数无效",
    "validation": "校验失败",
    "bad_output": "输出无效",
    "certificate": "证书错误",
    "redirects": "重定向过多",
    "limit": "达到上限",
    "recursion_limit": "步数过多",
    "cancelled": "已取消",
    "tool_error": "工具报错",
    "programming": "程序错误",
    "configuration": "配置错误",
    "ledger": "账本故障",
    "resources": "资源不足",
    "unknown": "未知错误",
}

_CLOSED = ("authentication", "permission")
"""Nothing of their details is passed on: they may speak of keys and accounts."""

_ADVICE: dict[Language, dict[str, str]] = {
    "en": {
        "wait": "The service asks to wait {wait}. Do something else first, or answer without it.",
        "retryable": "It may work again: do something else first and try again later, or answer without it.",
        "degradable": "The same call will not work now. Use another tool, or answer without it and say so.",
        "fatal": "It is broken, and calling it again will not help. Use another tool, or go on without it and say so in your answer.",
        "unavailable": "It is out of service for now. Use another tool, or answer without it and say so.",
        "quota": "Its quota is used up. Use another tool, or answer without it and say so.",
        "invalid_arguments": "Correct the arguments before you call it again.",
        "validation": "Correct the arguments before you call it again.",
        "closed": "No call to it will work. Go on without it, and say so in your answer.",
    },
    "zh": {
        "wait": "对方要求等待 {wait}。请先做别的，或者不用它直接回答。",
        "retryable": "它可能会恢复：请先做别的，稍后再试，或者不用它直接回答。",
        "degradable": "同样的调用现在不会成功。请换用其他工具，或者不用它回答并说明这一点。",
        "fatal": "它出了故障，再次调用也没有用。请换用其他工具，或者不用它继续，并在回答中说明。",
        "unavailable": "它目前停用。请换用其他工具，或者不用它回答并说明这一点。",
        "quota": "它的额度已经用完。请换用其他工具，或者不用它回答并说明这一点。",
        "invalid_arguments": "请先改正参数再调用。",
        "validation": "请先改正参数再调用。",
        "closed": "对它的任何调用都不会成功。请不用它继续，并在回答中说明。",
    },
}

_REFUSALS: dict[Language, dict[str, str]] = {
    "en": {
        "done": "{tool} was not run: it has done this already.",
        "in_progress": "{tool} was not run: the same call was under way already, and no end of it is known. Do not repeat it; check later what came of it.",
        "outcome_unknown": "{tool} was not run: no answer came back when this was last tried, so it may or may not have happened. Verify with a read before trying again; do not repeat it blindly.",
        "too_soon": "{tool} was not run: it was used a moment ago. Wait {wait} before the next one, or go on without it.",
        "too_many": "{tool} was not run: it has been used as often as is allowed here. Do not call it again; say in your answer what is left to do.",
        "down": "{tool} was not run: it keeps failing, and is left alone for {wait}. Do something else first and try again later, or answer without it.",
        "given_up": "{tool} was given up, because another call of the same step has failed for good.{unknown} Call it again only if it is still of use.",
        "store": "{tool} was not run: whether this has happened before cannot be looked up now. Do something else first, or say in your answer what is left to do.",
    },
    "zh": {
        "done": "{tool} 没有运行：它已经做过这件事。",
        "in_progress": "{tool} 没有运行：同样的调用此前已经开始，尚不清楚是否结束。不要重复；稍后再查看结果。",
        "outcome_unknown": "{tool} 没有运行：上次尝试没有收到答复，它可能已经生效，也可能没有。请先用只读操作核实，不要盲目重复。",
        "too_soon": "{tool} 没有运行：刚刚才用过。请等待 {wait} 再用，或者不用它继续。",
        "too_many": "{tool} 没有运行：次数已达上限。不要再调用；请在回答中说明还有什么没有完成。",
        "down": "{tool} 没有运行：它一直失败，暂停使用 {wait}。请先做别的，稍后再试，或者不用它直接回答。",
        "given_up": "{tool} 已放弃，因为同一步骤中的另一个调用彻底失败。{unknown}只有仍然需要时才再次调用。",
        "store": "{tool} 没有运行：现在无法查明它以前是否已经发生。请先做别的，或者在回答中说明还有什么没有完成。",
    },
}

_UNKNOWN: dict[Language, str] = {
    "en": "{tool} failed ({reason}{tries}){told} No clear answer came back, so it may or may not have happened. Verify with a read before trying again; do not repeat it blindly.",
    "zh": "{tool} 失败（{reason}{tries}）{told}没有收到明确的答复，它可能已经生效，也可能没有。请先用只读操作核实，不要盲目重复。",
}

_BEGUN: dict[Language, str] = {
    "en": "{tool} failed ({reason}{tries}){told} It had begun by then, so it may or may not have happened. Verify with a read before trying again; do not repeat it blindly.",
    "zh": "{tool} 失败（{reason}{tries}）{told}当时它已经开始，可能已经生效，也可能没有。请先用只读操作核实，不要盲目重复。",
}
_OWN_ERRORS = {
    "invalid_arguments": ("error", "出错"),
    "validation": ("error", "出错"),
    "tool_error": ("error", "出错"),
    "programming": ("error", "出错"),
    "not_found": ("not found", "未找到"),
    "conflict": ("conflict", "冲突"),
}
"""Clear answers that do not say how far a tool had come: how they are called where that counts."""

_MAY_HAVE: dict[Language, str] = {
    "en": " It had begun, and may or may not have happened: verify first.",
    "zh": "它已经开始，可能生效也可能没有：请先核实。",
}

_SUBSTITUTES: dict[Language, dict[str, str]] = {
    "en": {
        "cached": "[{tool} is down{why}; this is its answer from {age} ago.]",
        "static": "[{tool} is down{why}; this is a fixed answer in its place.]",
        "earlier": "[{tool} has done this already, {age} ago; it was not done again. Its result then:]",
        "tool": "[{tool} is down{why}; {other} has answered in its place.]",
    },
    "zh": {
        "cached": "[{tool} 不可用{why}；这是 {age}前的结果。]",
        "static": "[{tool} 不可用{why}；这是预设的答复。]",
        "earlier": "[{tool} 在 {age}前已经做过，没有重复执行。当时的结果：]",
        "tool": "[{tool} 不可用{why}；由 {other} 代为答复。]",
    },
}


def failure_words(
    language: Language,
    *,
    tool: str,
    kind: str | None,
    category: ErrorCategory | None,
    detail: str | None,
    attempts: int,
    elapsed: float,
    retry_after: float | None,
    unknown: bool,
) -> str:
    """What the model reads about a tool call that has failed, or was not to be made."""
    wait = "" if retry_after is None else seconds_words(retry_after, language)
    kind = kind or "unknown"
    if kind == "unavailable" and attempts == 0:
        kind = "down"
    refusal = _REFUSALS[language].get(kind)
    if refusal is not None:
        return refusal.format(tool=tool, wait=wait, unknown=_MAY_HAVE[language] if unknown else "")
    reason, tries = _reason(kind, language), _tries(attempts, elapsed, language)
    told = "" if kind in _CLOSED else _told(detail, language)
    if unknown:
        told = told or ("。" if language == "zh" else ".")
        if kind in _OWN_ERRORS:
            reason = _OWN_ERRORS[kind][language == "zh"]
            return _BEGUN[language].format(tool=tool, reason=reason, tries=tries, told=told)
        return _UNKNOWN[language].format(tool=tool, reason=reason, tries=tries, told=told)
    advice = _ADVICE[language]
    if kind in _CLOSED:
        key = "closed"
    else:
        key = "wait" if wait and category is not ErrorCategory.FATAL else kind
    if key not in advice:
        key = category.value if category is not None else "fatal"
    said = advice.get(key, advice["fatal"]).format(wait=wait)
    if language == "zh":
        return f"{tool} 失败（{reason}{tries}）{told or '。'}{said}"
    return f"{tool} failed ({reason}{tries}){told or '.'} {said}"


def substitute_words(
    language: Language, degraded: str, tool: str, kind: str | None, age: float | None
) -> str:
    """What the model reads above an output that stands in for the real thing."""
    name, _, other = degraded.partition(":")
    templates = _SUBSTITUTES[language]
    why = ""
    if kind is not None:
        reason = _reason(kind, language)
        why = f"（{reason}）" if language == "zh" else f" ({reason})"
    return templates.get(name, templates["tool"]).format(
        tool=tool, why=why, age=seconds_words(age or 0.0, language), other=other or name
    )


_UNITS: dict[Language, tuple[str, str, str, str]] = {
    "en": (" s", " min", " h", " days"),
    "zh": (" 秒", " 分钟", " 小时", " 天"),
}


def seconds_words(seconds: float, language: Language = "en") -> str:
    """A length of time in one number and one unit, e.g. `40 s` or `3 h`; never 0 where it is not."""
    s, minutes, hours, days = _UNITS[language]
    if seconds < 120:
        return f"{max(round(seconds), 1 if seconds > 0 else 0)}{s}"
    if seconds < 7200:
        return f"{round(seconds / 60)}{minutes}"
    if seconds < 172_800:
        return f"{round(seconds / 3600)}{hours}"
    return f"{round(seconds / 86_400)}{days}"


def _reason(kind: str, language: Language) -> str:
    plain = kind.replace("_", " ")
    return _REASONS_ZH.get(kind, plain) if language == "zh" else plain


def _tries(attempts: int, elapsed: float, language: Language) -> str:
    if attempts < 2:
        return ""
    took = seconds_words(elapsed, language)
    return (
        f"，{took}内试了 {attempts} 次"
        if language == "zh"
        else f", tried {attempts} times in {took}"
    )


def _told(detail: str | None, language: Language) -> str:
    """The detail as the rest of a sentence."""
    if not detail or not detail.strip():
        return ""
    text = " ".join(detail.split())
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if language == "zh":
        return f"：{text.rstrip('。.')}。"
    return f": {text.rstrip('.')}."
