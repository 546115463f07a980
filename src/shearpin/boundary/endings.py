"""How a run ends over failures: its finding, and a last word without internals. English and Chinese.

Contract: the last word says that something failed, what kind of thing, and what that means for the
reader; it names no node, no exception and no message of one. Those are in the report.
"""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

from typing import Final, Literal

from shearpin.boundary.categories import Classification, ErrorCategory
from shearpin.findings import Finding, Severity
from shearpin.verdicts import Halt

__all__ = [
    "FAMILY",
    "failure_finding",
    "failure_halt",
    "hint_words",
    "no_result",
    "tried_words",
]

Language = Literal["en", "zh"]

FAMILY: Final = "failures"
"""The family of findings about failures, and how the reasons of runs that end over one begin."""

_WHY: dict[Language, dict[str, str]] = {
    "en": {
        "authentication": "a service that it needs did not accept our credentials",
        "permission": "a service that it needs refused access",
        "quota": "the quota of a service that it needs is used up",
        "rate_limit": "a service that it needs is limiting requests",
        "overloaded": "a service that it needs is overloaded",
        "timeout": "a service that it needs did not answer in time",
        "network": "a service that it needs could not be reached",
        "unavailable": "a service that it needs is not available",
        "context_length": "there was more to read than the model can take",
        "content_filter": "the answer was withheld by a content filter",
        "empty_answer": "the model gave no answer",
        "cut_off": "the answer was longer than is allowed",
        "refusal": "the model declined to answer",
        "bad_output": "what came back could not be read",
        "invalid_request": "a service that it needs refused the request",
        "recursion_limit": "it took more steps than are allowed",
    },
    "zh": {
        "authentication": "所需的服务没有接受我们的凭证",
        "permission": "所需的服务拒绝访问",
        "quota": "所需服务的额度已经用完",
        "rate_limit": "所需的服务正在限制请求次数",
        "overloaded": "所需的服务过载",
        "timeout": "所需的服务没有及时答复",
        "network": "无法连接所需的服务",
        "unavailable": "所需的服务不可用",
        "context_length": "内容超出了模型能够读取的长度",
        "content_filter": "回答被内容过滤器拦截",
        "empty_answer": "模型没有给出回答",
        "cut_off": "回答超出了允许的长度",
        "refusal": "模型拒绝回答",
        "bad_output": "返回的内容无法解读",
        "invalid_request": "所需的服务拒绝了请求",
        "recursion_limit": "步骤数超过了上限",
    },
}
_OTHER: dict[Language, dict[ErrorCategory, str]] = {
    "en": {
        ErrorCategory.RETRYABLE: "something that it needs is not working at the moment",
        ErrorCategory.DEGRADABLE: "something that it needs did not work",
        ErrorCategory.FATAL: "something went wrong on our side",
    },
    "zh": {
        ErrorCategory.RETRYABLE: "所需的某项功能目前无法使用",
        ErrorCategory.DEGRADABLE: "所需的某项功能没有成功",
        ErrorCategory.FATAL: "我们这边出现了错误",
    },
}
_NOW: dict[Language, dict[ErrorCategory, str]] = {
    "en": {
        ErrorCategory.RETRYABLE: "Trying again later may work.",
        ErrorCategory.DEGRADABLE: "Asking in another way may work.",
        ErrorCategory.FATAL: "Asking again will not help until that is mended.",
    },
    "zh": {
        ErrorCategory.RETRYABLE: "稍后再试可能会成功。",
        ErrorCategory.DEGRADABLE: "换一种方式提问可能会成功。",
        ErrorCategory.FATAL: "在修复之前，重新提问不会有帮助。",
    },
}
_UNCLEAR: dict[Language, str] = {
    "en": "Something that was to be done may or may not have happened: check before doing it again.",
    "zh": "有一项操作可能已经执行，也可能没有：重新执行前请先核实。",
}
_HALT: dict[Language, str] = {
    "en": "This could not be finished: {why}. {now} What was found up to then stands above.",
    "zh": "未能完成：{why}。{now}此前的结果见上文。",
}
_NO_RESULT: dict[Language, str] = {
    "en": "No result: the run was ended because something failed ({reason}). Whether this was carried out is not known; check before doing it again.",
    "zh": "没有结果：因出现故障（{reason}），运行已结束。这次调用是否已执行不得而知；重新执行前请先核实。",
}
_TRIED: dict[Language, str] = {
    "en": "This was tried before, from here on, and failed: {error}. It was taken back. Try another way.",
    "zh": "从这里开始已经尝试过一次，但失败了：{error}。该尝试已撤回。请换一种方法。",
}
_HINT: dict[Language, str] = {
    "en": "The last attempt at this failed: {error}. Do it differently this time.",
    "zh": "上一次尝试失败了：{error}。这次请换一种做法。",
}


def failure_finding(
    node: str,
    failure: Classification,
    *,
    attempts: int,
    step: int,
    agent: str,
    level: Severity = Severity.STOP,
) -> Finding:
    """The finding that a node has failed, as evidence without texts."""
    return Finding(
        family=FAMILY,
        rule=failure.error_type,
        key=f"{FAMILY}:{node}:{failure.error_type}",
        level=level,
        count=attempts,
        limit=attempts,
        onset_step=step,
        step=step,
        agent=agent,
        subject=node,
        evidence={"node": node, "category": failure.category.value},
    )


def failure_halt(
    failure: Classification, finding: Finding, language: Language, *, unclear: bool = False
) -> Halt:
    """The end of a run over a failure; `unclear` where what was to be done may have happened."""
    category = failure.category
    why = _WHY[language].get(failure.error_type) or _OTHER[language].get(category, "")
    now = _UNCLEAR[language] if unclear else _NOW[language].get(category, "")
    message = _HALT[language].format(why=why, now=now)
    return Halt(f"{FAMILY}:{failure.error_type}", message, finding)


def no_result(halt: Halt, language: Language = "en") -> str | None:
    """What an open tool call is answered with in a run that ends over a failure; None: as usual.

    It may have been under way, so nobody is told that it was not run.
    """
    if not halt.reason.startswith(f"{FAMILY}:"):
        return None
    return _NO_RESULT[language].format(reason=halt.reason)


def tried_words(failure: Classification, language: Language) -> str:
    """The note of what was tried, in a state that was taken back."""
    return _TRIED[language].format(error=failure.message)


def hint_words(
    failure: Classification, template: str | None, *, attempt: int, node: str, language: Language
) -> str:
    """What is added to what a node is given when it is tried again with a modified prompt."""
    if template is None:
        return _HINT[language].format(error=failure.message)
    return template.format(error=failure.message, attempt=attempt, node=node)
