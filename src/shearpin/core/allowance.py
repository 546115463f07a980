"""The budget's own words and findings: what is used up, what is left, and what to do now."""

from __future__ import annotations

from typing import Literal

from shearpin.core.books import Exhausted, Notice
from shearpin.core.budget import TIMED, describe
from shearpin.core.forecast import Forecast
from shearpin.findings import Evidence, Finding, Severity

__all__ = [
    "block_words",
    "broken_finding",
    "broken_tool_words",
    "broken_words",
    "exhausted_finding",
    "forecast_evidence",
    "halt_words",
    "landing_words",
    "notice_finding",
    "notice_words",
    "unpriced_finding",
    "unpriced_words",
]

Language = Literal["en", "zh"]

_SPAN: dict[Language, dict[str, str]] = {
    "en": {"call": "a single call", "run": "this run", "thread": "this conversation"},
    "zh": {"call": "单次调用", "run": "本次运行", "thread": "本次会话"},
}
_SOFT: dict[Language, str] = {
    "en": "{spent} of the {limit} for {span} are used.{until} Wrap up: take only the steps that "
    "the answer still needs, then give it.",
    "zh": "{span}的限额 {limit} 已使用 {spent}。{until}"
    "请开始收尾：只做回答仍然需要的步骤，然后给出答案。",
}
_UNTIL: dict[Language, str] = {
    "en": " At this rate it lasts for about {left} more steps.",
    "zh": "按目前速度大约还能进行 {left} 步。",
}
_LAST: dict[Language, str] = {
    "en": "This is the last answer that the limit of {limit} for {span} allows. Give your final "
    "answer now, without calling tools, and say what is missing.",
    "zh": "{span}的限额 {limit} 只允许再回答这一次。"
    "请立即给出最终答案，不要再调用工具，并说明缺少什么。",
}
_BLOCK: dict[Language, str] = {
    "en": "Not run: the limit of {limit} for {span} is reached. {others}answer with what you have "
    "and say what is missing.",
    "zh": "未执行：{span}的限额 {limit} 已用完。{others}请用已有信息作答，并说明缺少什么。",
}
_OTHERS: dict[Language, tuple[str, str]] = {
    "en": ("Use another tool, or ", "No tool can be called any more: "),
    "zh": ("请使用其他工具，或者", "已不能再调用任何工具："),
}
_HALT: dict[Language, str] = {
    "en": "This run was stopped at its limit: {spent} of the {limit} for {span} are used{next}. "
    "What was found up to then stands above.",
    "zh": "本次运行因达到限额而停止：{span}的限额 {limit} 已使用 {spent}{next}。"
    "此前得到的内容见上文。",
}
_HALT_CALL: dict[Language, str] = {
    "en": "This run was stopped: its next call could take {wanted}, and {limit} are allowed for "
    "{span}. What was found up to then stands above.",
    "zh": "本次运行已停止：下一次调用最多可能需要 {wanted}，而{span}只允许 {limit}。"
    "此前得到的内容见上文。",
}
_HALT_DEEP: dict[Language, str] = {
    "en": "Not done: it would take an agent on level {wanted}, and {limit} are allowed for {span}. "
    "Do this part without calling another agent, or say what is missing.",
    "zh": "未执行：这需要第 {wanted} 层代理，而{span}只允许 {limit}。"
    "请不再调用其他代理完成这一部分，或说明缺少什么。",
}
_HALT_LATE: dict[Language, str] = {
    "en": "This run was stopped: a call took longer than the {limit} allowed for {span}. What was "
    "found up to then stands above.",
    "zh": "本次运行已停止：一次调用超过了{span}允许的 {limit}。此前得到的内容见上文。",
}
_BROKEN: dict[Language, str] = {
    "en": "This run was stopped because its budget could not be kept. What was found up "
    "to then stands above.",
    "zh": "本次运行已停止，因为无法核算其限额。此前得到的内容见上文。",
}
_BROKEN_TOOL: dict[Language, str] = {
    "en": "Not run: the budget cannot be kept at the moment. Answer with what you have "
    "and say what is missing.",
    "zh": "未执行：目前无法核算限额。请用已有信息作答，并说明缺少什么。",
}
_UNPRICED: dict[Language, str] = {
    "en": "This run was stopped: what its next step costs is not known, and its cost is limited. "
    "What was found up to then stands above.",
    "zh": "本次运行已停止：下一步的费用未知，而本次运行有费用限额。此前得到的内容见上文。",
}
_NEXT: dict[Language, str] = {
    "en": ", and the next call could take up to {wanted}",
    "zh": "，下一次调用最多可能需要 {wanted}",
}


def _finding(
    kind: str, what: Exhausted | Notice, level: Severity, step: int, agent: str, more: Evidence
) -> Finding:
    name = what.dimension
    evidence: Evidence = {
        "dimension": name,
        "per": what.per,
        "spent": what.spent,
        "allowed": what.limit,
        **more,
    }
    if name == "usd":
        evidence["spent_usd"] = describe(name, what.spent)
        evidence["allowed_usd"] = describe(name, what.limit)
    return Finding(
        family="budget",
        rule="budget:" + kind,
        key=f"budget:{what.per}:{name}:{kind}",
        level=level,
        count=int(what.spent),
        limit=int(what.limit),
        onset_step=1,
        step=step,
        agent=agent,
        subject=name.removeprefix("tool:") if name.startswith("tool:") else None,
        cause="budget_" + kind,
        hard=False,
        evidence=evidence,
    )


def exhausted_finding(found: Exhausted, level: Severity, step: int, agent: str) -> Finding:
    """A limit that leaves no room, as a finding."""
    more: Evidence = {"held": found.held, "wanted": found.wanted, "crowded": found.crowded}
    return _finding("exhausted", found, level, step, agent, more)


def notice_finding(notice: Notice, step: int, agent: str) -> Finding:
    """A limit that is nearly used, as a finding."""
    more = forecast_evidence(notice.forecast)
    return _finding(notice.kind, notice, Severity.NUDGE, step, agent, more)


def unpriced_finding(model: str | None, step: int, agent: str) -> Finding:
    """A model whose calls cannot be held against a dollar limit, as a finding."""
    return _outside("unknown_price", model, step, agent)


def broken_finding(step: int, agent: str) -> Finding:
    """A budget that cannot be kept, because it is itself at fault."""
    return _outside("unavailable", None, step, agent)


def broken_words(language: Language) -> str:
    """The last word of a run whose budget could not be kept; the fault is in log and report."""
    return _BROKEN[language]


def broken_tool_words(language: Language) -> str:
    """The answer to a tool call that is not run because the budget could not be kept."""
    return _BROKEN_TOOL[language]


def unpriced_words(language: Language) -> str:
    """The last word of a run whose next call has no known price; the fix is in log and report."""
    return _UNPRICED[language]


def _outside(kind: str, model: str | None, step: int, agent: str) -> Finding:
    rule = "budget:" + kind
    return Finding(
        family="budget",
        rule=rule,
        key=f"{rule}:{model}",
        level=Severity.STOP,
        count=1,
        limit=1,
        onset_step=step,
        step=step,
        agent=agent,
        cause="budget_" + kind,
        hard=False,
        evidence={} if model is None else {"model": model},
    )


def forecast_evidence(forecast: Forecast | None) -> Evidence:
    """A forecast as named numbers; nothing where there is none."""
    if forecast is None:
        return {}
    return {
        "forecast_step": forecast.step,
        "forecast_step_low": forecast.step_low,
        "forecast_step_high": forecast.step_high,
        "forecast_at": round(forecast.at, 1),
        "forecast_at_low": round(forecast.at_low, 1),
        "forecast_at_high": None if forecast.at_high is None else round(forecast.at_high, 1),
    }


def notice_words(notice: Notice, step: int, language: Language) -> str:
    """What the agent is told when a limit is nearly used."""
    if notice.kind == "last":
        return landing_words(notice.dimension, notice.limit, notice.per, language)
    ahead = notice.forecast.step - step if notice.forecast is not None else 0
    until = _UNTIL[language].format(left=ahead) if ahead > 1 else ""
    return _SOFT[language].format(
        spent=describe(notice.dimension, notice.spent),
        limit=describe(notice.dimension, notice.limit),
        span=_SPAN[language][notice.per],
        until=until,
    )


def landing_words(dimension: str, limit: float, per: str, language: Language) -> str:
    """What the agent is told before the last answer that a limit allows."""
    return _LAST[language].format(limit=describe(dimension, limit), span=_SPAN[language][per])


def block_words(found: Exhausted, language: Language) -> str:
    """The answer to a tool call that is not run because of a limit."""
    one_tool = found.dimension.startswith("tool:")
    return _BLOCK[language].format(
        limit=describe(found.dimension, found.limit),
        span=_SPAN[language][found.per],
        others=_OTHERS[language][0 if one_tool else 1],
    )


def halt_words(found: Exhausted, language: Language) -> str:
    """The last word of a run that was stopped at a limit."""
    limit, span = describe(found.dimension, found.limit), _SPAN[language][found.per]
    wanted = describe(found.dimension, found.wanted)
    if found.dimension == "depth":
        return _HALT_DEEP[language].format(wanted=int(found.wanted), limit=limit, span=span)
    if found.per == "call" and found.dimension in TIMED:
        return _HALT_LATE[language].format(limit=limit, span=span)
    if found.per == "call":
        return _HALT_CALL[language].format(wanted=wanted, limit=limit, span=span)
    next_ = _NEXT[language].format(wanted=wanted) if found.wanted > 1 else ""
    spent = describe(found.dimension, found.spent)
    return _HALT[language].format(spent=spent, limit=limit, span=span, next=next_)
