"""The guard's own words: short, specific, and about what to do next. English and Chinese.

Arguments and results are quoted shortened and masked; secrets are struck out before anything else.
Every template can be replaced by one of the user's own, see `wording`.
"""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from shearpin.core.canonical import canonical_json
from shearpin.core.secrets import without_secrets, without_values
from shearpin.core.wording import NO_WORDS, Own, own_words
from shearpin.findings import Finding

__all__ = [
    "CAUSES",
    "RULES",
    "block_text",
    "firm_words",
    "halt_text",
    "nudge_text",
    "rollback_text",
    "shorten",
    "without_text",
    "wrap_up_text",
]

Language = Literal["en", "zh"]

_SPACE = re.compile(r"\s+")
_LEAST_READ = 2_000
"""Characters looked at for secrets, however little of them is quoted."""


def shorten(value: object, limit: int = 120) -> str:
    """One line of at most `limit` characters, secrets struck out."""
    text = value if isinstance(value, str) else canonical_json(value)
    text = without_secrets(text[: max(limit * 4, _LEAST_READ)])
    text = _SPACE.sub(" ", text).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


_WHAT: dict[Language, dict[str, str]] = {
    "en": {
        "repeat": "You have called `{tool}` with {args} {count} times and got the same result each time: “{result}”.",
        "cycle": "You have gone through the same {period} steps {count} times with the same results ({tool}).",
        "unknown_tool": "You have asked for `{tool}` {count} times; there is no such tool here.",
        "bad_args": "The arguments of your last {count} calls to `{tool}` could not be read: “{result}”.",
        "monologue": "Your last {count} messages said the same and called no tool.",
        "blank": "Your last {count} messages were empty.",
        "error_streak": "`{tool}` has failed {count} times in the same way with different arguments: “{result}”.",
        "empty_streak": "`{tool}` has come back empty {count} times in a row with different arguments.",
        "duplicate_in_message": "You asked for the same call to `{tool}` {count} times in one message; once is enough.",
        "ping_pong": "You hand over to each other ({count} times so far) and nobody does the work.",
        "echo": "You have sent the same long message {count} times, word for word.",
        "litany": "You have announced the same step {count} times in the same words, each time with a slightly different "
        "call to `{tool}`.",
        "rejected_guesses": "`{tool}` has rejected {count} different attempts in the same way: {result}",
        "insistence": "You have made the same call to `{tool}` {count} times in a row and what comes back is nearly the same.",
        "revisits": "Of your last steps, {count} repeated earlier calls with the same results (latest: `{tool}`).",
        "undone": "You have undone your own changes {count} times with the same call to `{tool}`.",
        "paging": "You are walking backwards in small steps with `{tool}` ({count} steps so far).",
        "velocity": "Each of your last {count} steps took in far more text, far faster, than your steps before.",
        "state_oscillation": "The last {count} steps only wrote values that were there before (latest: `{tool}`).",
        "untested_edits": "You have made {count} changes in a row without running anything.",
        "same_input": "Your last {count} prompts were exactly as long as each other: nothing was added to them.",
        "paraphrase": "Your last {count} thoughts said the same in other words, and the calls between them brought "
        "nothing new.",
        "loop_risk": "Most of your last steps repeat what you did before, or what it led to (latest: `{tool}`).",
        "small_talk": "The last {count} messages between you only repeat words that were said before.",
        "together": "Several small signs together say that you are getting nowhere.",
        "other": "The last {count} steps brought nothing new ({tool}).",
    },
    "zh": {
        "repeat": "你已经用参数 {args} 调用 `{tool}` {count} 次，每次结果都相同：“{result}”。",
        "cycle": "你已经把同样的 {period} 个步骤重复了 {count} 遍，结果没有变化（{tool}）。",
        "unknown_tool": "你已经请求 `{tool}` {count} 次，这里没有这个工具。",
        "bad_args": "你最近 {count} 次调用 `{tool}` 的参数无法解析：“{result}”。",
        "monologue": "你最近 {count} 条消息内容相同，也没有调用任何工具。",
        "blank": "你最近 {count} 条消息是空的。",
        "error_streak": "`{tool}` 用不同参数失败了 {count} 次，错误相同：“{result}”。",
        "empty_streak": "`{tool}` 用不同参数连续 {count} 次没有返回内容。",
        "duplicate_in_message": "你在一条消息里对 `{tool}` 发出了 {count} 次相同的调用，一次就够了。",
        "ping_pong": "你们一直在互相转交（已 {count} 次），没有人真正处理。",
        "echo": "你已经把同一条长消息一字不差地发送了 {count} 次。",
        "litany": "你已经用同样的话宣布同一步骤 {count} 次，每次对 `{tool}` 的调用只略有不同。",
        "rejected_guesses": "`{tool}` 以同样的方式拒绝了 {count} 次不同的尝试：{result}",
        "insistence": "你已经连续 {count} 次对 `{tool}` 发出相同的调用，返回内容几乎相同。",
        "revisits": "你最近的步骤中有 {count} 步重复了之前的调用，结果相同（最近：`{tool}`）。",
        "undone": "你已经用同样的 `{tool}` 调用撤销自己的修改 {count} 次。",
        "paging": "你正在用 `{tool}` 小步往回翻（已 {count} 步）。",
        "velocity": "你最近 {count} 步每步读入的内容远多于之前，而且快得多。",
        "state_oscillation": "最近 {count} 步写入的都是之前出现过的值（最近：`{tool}`）。",
        "untested_edits": "你已经连续修改 {count} 次，没有运行任何验证。",
        "same_input": "你最近 {count} 次看到的内容长度完全相同：没有新增任何内容。",
        "paraphrase": "你最近 {count} 次的想法只是换了说法，期间的调用也没有带来新内容。",
        "loop_risk": "你最近的大部分步骤都在重复之前的做法或结果（最近：`{tool}`）。",
        "small_talk": "你们之间最近 {count} 条消息只是在重复说过的话。",
        "together": "几个小迹象合在一起表明你没有进展。",
        "other": "最近 {count} 步没有任何新进展（{tool}）。",
    },
}

_ADVICE: dict[Language, dict[str, str]] = {
    "en": {
        "answer_not_used": "The answer will not change. Use it, or take a different approach.",
        "error_not_understood": "Read the error: the same call will fail again. Change the arguments, use another tool, "
        "or say what is missing.",
        "empty_taken_for_failure": "An empty answer is an answer: there is nothing there. Look elsewhere or say so.",
        "outage": "The service is failing by itself. Wait, use another source, or say that it is unavailable.",
        "same_sequence": "Another lap will end the same way. Say in one sentence what you expected to change, then do "
        "something different, or answer with what you have.",
        "unknown_name": "Use one of the tools you were given, by its exact name, or answer without a tool.",
        "unreadable_arguments": "Send one complete JSON object that fits the tool's schema, or answer without the tool.",
        "says_the_same": "Act now: call the tool you need, or give your final answer.",
        "says_nothing": "Call the tool you need, or give your final answer.",
        "waiting": "It takes time, and asking does not make it faster. Wait before you ask again, do something else "
        "meanwhile, or say that it is still under way.",
        "nothing_new": "Whatever is asked, this source gives the same. Check whether the tool works, use another "
        "source, or answer with what you have.",
        "asked_twice": "The result of the first one is the result of all of them.",
        "handed_over": "Do the task yourself with what you have, or answer that it cannot be done.",
        "context_grows": "Read or send only the part that you need, and check what the last step has told you before the next.",
        "guessing": "Stop guessing: find out what is expected, or say what is missing.",
        "resent": "It has been received. Say only what has changed, do the next thing, or finish.",
        "pseudo_progress": "Going back and forth leads nowhere. Say what each attempt has shown, then choose one way and check it.",
        "walks_back": "Search for a word that must stand there, or read a much larger part at once.",
        "not_tested": "Run something that shows whether the last changes work before you make the next one.",
        "all_said": "Everything has been said. Finish here, and answer only if something is still open.",
        "nothing_appended": "What your calls returned does not seem to reach you. Say so, and answer with what you have.",
    },
    "zh": {
        "answer_not_used": "答案不会改变。请使用已有结果，或换一种做法。",
        "error_not_understood": "请仔细看错误信息：同样的调用还会失败。请修改参数、换一个工具，或说明缺少什么。",
        "empty_taken_for_failure": "空结果也是结果：那里没有内容。请到别处查找，或如实说明。",
        "outage": "服务本身出现故障。请等待、换一个来源，或说明暂时不可用。",
        "same_sequence": "再来一遍也会是同样的结果。请用一句话说明你期望什么变化，然后换一种做法，或用已有信息作答。",
        "unknown_name": "请使用提供给你的工具的准确名称，或者不用工具直接回答。",
        "unreadable_arguments": "请发送一个符合该工具格式的完整 JSON 对象，或者不用工具直接回答。",
        "says_the_same": "请立即行动：调用需要的工具，或给出最终答案。",
        "says_nothing": "请调用需要的工具，或给出最终答案。",
        "waiting": "这需要时间，反复询问不会更快。请等待一段时间再问、先做别的事，或如实说明仍在进行中。",
        "nothing_new": "无论怎么问，这个来源给出的都一样。请检查工具是否正常、换一个来源，或用已有信息作答。",
        "asked_twice": "第一次调用的结果就是全部的结果。",
        "handed_over": "请用已有信息自己完成任务，或说明无法完成。",
        "context_grows": "请只读取或发送需要的部分，并在下一步之前先看清上一步告诉了你什么。",
        "guessing": "请停止猜测：弄清需要什么，或说明缺少什么。",
        "resent": "内容已收到。请只说明变化之处，继续下一步，或结束。",
        "pseudo_progress": "来回反复没有进展。请说明每次尝试得到的结论，然后选定一种做法并验证。",
        "walks_back": "请搜索那里必然出现的词，或者一次读取大得多的部分。",
        "not_tested": "请先运行能验证最近改动的命令，再做下一处修改。",
        "all_said": "该说的都已说完。请就此结束，只有仍有未决事项时才回复。",
        "nothing_appended": "你的调用结果似乎没有返回给你。请如实说明，并用已有信息作答。",
    },
}
_FIRM: dict[Language, str] = {
    "en": " If you do it again, it will not be run and the run may be ended.",
    "zh": "如果再次这样做，调用将不会执行，运行可能被终止。",
}
_BLOCK: dict[Language, tuple[str, str]] = {
    "en": (
        "Not run: this call was asked for {count} times before, and nothing new came of it.",
        " The earlier result was: “{result}”.",
    ),
    "zh": (
        "未执行：该调用此前已被请求 {count} 次，没有得到新的结果。",
        "之前的结果是：“{result}”。",
    ),
}
_HALT: dict[Language, str] = {
    "en": "This run was stopped because it went round in circles: {what} What was found up to then stands above.",
    "zh": "本次运行已停止，因为它在原地打转：{what} 此前得到的内容见上文。",
}
_HALT_WHAT: dict[Language, dict[str, str]] = {
    "en": {
        "repeat": "`{tool}` was asked for {count} times with the same arguments, and nothing new came of it.",
        "cycle": "the same {period} steps came {count} times with the same results.",
        "unknown_tool": "tools that do not exist were asked for {count} times.",
        "bad_args": "`{tool}` was called {count} times with arguments that cannot be read.",
        "monologue": "the same message came {count} times without any action.",
        "blank": "{count} messages in a row were empty.",
        "echo": "the same message was sent {count} times, word for word.",
        "chanting": "an answer said the same {period} characters {count} times and was cut there.",
        "error_streak": "`{tool}` failed {count} times in the same way.",
        "ping_pong": "agents handed the task to each other and nobody did it.",
        "other": "the last {count} steps brought nothing new.",
    },
    "zh": {
        "repeat": "`{tool}` 以相同参数被请求 {count} 次，没有得到新的结果。",
        "cycle": "同样的 {period} 个步骤重复了 {count} 遍，结果相同。",
        "unknown_tool": "不存在的工具被请求了 {count} 次。",
        "bad_args": "`{tool}` 被调用 {count} 次，参数都无法解析。",
        "monologue": "同样的消息出现了 {count} 次而没有行动。",
        "blank": "连续 {count} 条消息是空的。",
        "echo": "同一条消息被一字不差地发送了 {count} 次。",
        "chanting": "一条回答把同样的 {period} 个字符重复了 {count} 遍，已在该处截断。",
        "error_streak": "`{tool}` 以同样的方式失败了 {count} 次。",
        "ping_pong": "各方互相转交任务，没有人真正处理。",
        "other": "最近 {count} 步没有任何新进展。",
    },
}


_ROLLBACK: dict[Language, str] = {
    "en": "Your last steps have been undone, because they went round in circles: {what} Do not try the same again. {advice}",
    "zh": "你最近的步骤已被撤销，因为它们在原地打转：{what} 请不要再次尝试同样的做法。{advice}",
}
_WITHOUT: dict[Language, str] = {
    "en": "Not run: `{tool}` has been taken away for some rounds, because it was called round in circles. Go on without it, or answer with what you have.",
    "zh": "未执行：`{tool}` 因反复调用已被暂时停用。请不使用它继续，或用已有信息作答。",
}
_WRAP_UP: dict[Language, str] = {
    "en": "This run is being ended ({what}) and no tool can be called any more. Give your final answer now, with what you have found so far, and say plainly what is missing.",
    "zh": "本次运行即将结束（{what}），已不能再调用任何工具。请立即用目前得到的内容给出最终答案，并如实说明缺少什么。",
}


RULES = frozenset(_WHAT["en"]) | frozenset(_HALT_WHAT["en"])
"""Rules and families that have words of their own."""
CAUSES = frozenset(_ADVICE["en"])
"""Likely causes for which there is advice."""


def _kind(finding: Finding, known: Mapping[str, str]) -> str:
    if finding.cause == "says_nothing":
        return "blank"
    return (
        finding.rule
        if finding.rule in known
        else (finding.family if finding.family in known else "other")
    )


def _fill(template: str, finding: Finding, args: object, text: str, **more: str) -> str:
    return template.format(
        tool=shorten(finding.subject or "-", 80),
        args=shorten(args, 120),
        count=finding.count,
        result=shorten(without_values(text, args), 160) or "(empty)",
        period=finding.evidence.get("period", ""),
        **more,
    )


def _advice(finding: Finding, language: Language, own: Own) -> str:
    mine = own_words(own, "advice", finding)
    if mine is not None:
        return _fill(mine, finding, "", "")
    return _ADVICE[language].get(finding.cause or "", _ADVICE[language]["same_sequence"])


def nudge_text(
    finding: Finding, args: object, text: str, firm: bool, language: Language, own: Own = NO_WORDS
) -> str:
    """What the agent is told: what happened, with numbers, and what to do instead."""
    known = _WHAT[language]
    what = _fill(
        own_words(own, "nudge", finding) or known[_kind(finding, known)], finding, args, text
    )
    gap = " " if language == "en" else ""
    return (
        what + gap + _advice(finding, language, own) + (firm_words(language, own) if firm else "")
    )


def firm_words(language: Language, own: Own = NO_WORDS) -> str:
    """What a second nudge adds."""
    mine = own.get("firm")
    return _FIRM[language] if mine is None else " " + mine


def block_text(finding: Finding, text: str | None, language: Language, own: Own = NO_WORDS) -> str:
    """The answer to a call that is not run: why, the earlier result, and what to do instead."""
    refusal, earlier = _BLOCK[language]
    mine = own_words(own, "block", finding)
    known = finding.family in ("unknown_tool", "error_streak", "duplicate_in_message")
    if known:
        refusal = _WHAT[language][_kind(finding, _WHAT[language])]
    out = _fill(mine or refusal, finding, "", text or "")
    if text and mine is None and not known:
        out += _fill(earlier, finding, "", text)
    return out + (" " if language == "en" else "") + _advice(finding, language, own)


def halt_text(finding: Finding, language: Language, own: Own = NO_WORDS) -> str:
    """The last word of a run that was stopped: honest, without internals."""
    mine = own_words(own, "halt", finding) or _HALT[language]
    return _fill(mine, finding, "", "", what=_halt_what(finding, language))


def rollback_text(finding: Finding, language: Language, own: Own = NO_WORDS) -> str:
    """The note that is left where steps were undone."""
    mine = own_words(own, "rollback", finding) or _ROLLBACK[language]
    advice = _advice(finding, language, own)
    return _fill(mine, finding, "", "", what=_halt_what(finding, language), advice=advice)


def without_text(finding: Finding, language: Language, own: Own = NO_WORDS) -> str:
    """The answer to a call of a tool that was taken away."""
    return _fill(own_words(own, "without_tool", finding) or _WITHOUT[language], finding, "", "")


def wrap_up_text(
    finding: Finding | None, message: str, language: Language, own: Own = NO_WORDS
) -> str:
    """What the agent is told before its last answer; `message` where no finding says why."""
    template = own.get("wrap_up", _WRAP_UP[language])
    if finding is None or finding.family in ("budget", "failures"):
        return template.format(
            what=message.rstrip(".。"), tool="-", args="", count="", result="", period=""
        )
    what = _halt_what(finding, language).rstrip(".。")
    return _fill(template, finding, "", "", what=what)


def _halt_what(finding: Finding, language: Language) -> str:
    known = _HALT_WHAT[language]
    return _fill(known[_kind(finding, known)], finding, "", "")
