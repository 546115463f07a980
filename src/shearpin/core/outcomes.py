"""Read from a result how a call ended, also where the host gave no status.

*Source*: public runs mostly carry no status; without reading it from the text, one labelled loop in
five is lost. Only the head and the tail of a text are read, so a long document that mentions errors
does not become one.
"""

# ruff: noqa: E501 - patterns are read whole
from __future__ import annotations

import re
from typing import Literal, TypeAlias

from shearpin.core.canonical import canonical_json
from shearpin.events import CallStatus

__all__ = ["Outcome", "is_pending", "outcome_of", "result_text"]

Outcome: TypeAlias = Literal[
    "ok", "empty", "error", "transient", "unknown_tool", "bad_args", "blocked"
]

_HEAD = 240
_STATE_LENGTH = 40
_SCREEN_LENGTH = 200
_UNKNOWN = re.compile(
    r"^\W*(?:error:?\s*)?(?:unknown (?:tool|function)\b|no such tool\b|未知工具|没有这个工具)"
    r"|\bis not a valid tool\b|^\W*(?:error:?\s*)?tool\b.{0,80}\b(?:not found|does not exist|is not available|not registered)",
    re.IGNORECASE,
)
_BAD_ARGS = re.compile(
    r"not valid json|invalid json|failed to parse structured output|^\W*error invoking tool\b"
    r"|arguments? (?:could not be|cannot be|failed to be) parsed|不是有效的 ?json",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\b(?:429|502|503|504|529)\b|could not get lock|resource temporarily|too many requests|rate.?limit|service unavailable|temporarily unavailable|overloaded"
    r"|connection (?:reset|refused|aborted|timed out|error)|network (?:is )?(?:unreachable|error)|gateway time"
    r"|try again later|请求过于频繁|稍后再试|服务不可用",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"^\W*(?:http\S*\s+|error\W+|status\W+){0,2}(?:429|502|503|504|529)\W+"
    r"(?:service|bad gateway|gateway|too many|temporarily|unavailable|overloaded|slow down|upstream|server)\b"
    r"|^\W*(?:too many requests|rate.?limit|service unavailable|connection (?:reset|refused|timed out))"
)
_ERROR = re.compile(
    r"^\W*(?:\w+\s){0,3}?(?:error|exception|traceback|fatal|failed|failure|invalid|malformed|timed out|unable|cannot|can't|could not|couldn't|"
    r"denied|rejected(?!,)|错误|失败|无法)\b(?![\"']\s*:|:? ?\d+\.\d+$)"
    r"|^\W*\w*(?:Error|Exception)\b(?![\"']\s*:)|\berror(?: executing| in| while|:)|\bno such (?:file|table|column|directory|option|user|container|command)"
    r"|command not found|permission denied|not recognized|syntax error|access denied|traceback \(most recent"
    r"|^\W*(?:invalid|illegal|unknown|unrecognized|missing)\b|(?:is|are) not (?:found|defined|allowed|recognized|valid|permitted|authorized)|^[\w./-]+: .{0,60}\bis required\b|not appear verbatim|does(?: not|n't) exist"
    r"|\b(?:401|403|404|410)\b\W{1,3}(?:unauthori[sz]ed|forbidden|not found|gone)\b"
    r"|\byour (?:last )?(?:response|answer|output|reply|message) (?:should|must|has to|needs to)\b"
    r"|^\W*(?:错误|失败|无法|不存在|未找到该)|失败[：:]|不存在[\"。，]?|无权限?|拒绝访问"
    r"|[\"']error[\"']\s*:(?!\s*(?:null\b|none\b|false\b|0(?:\.\d+)?\b|[\"'\[{]\s*[\"'\]}]))|[\"'](?:success|ok)[\"']\s*:\s*false"
    r"|[\"']status[\"']\s*:\s*[\"'](?:error|failed|failure)[\"']",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:[\w./+-]{1,40}: (?:line )?){1,3}(?:[‘'`\"]?\S{1,80}[’'\"]?: )?(?:-\S+: )?"
    r"(?:(?:invalid|illegal|unrecogni[sz]ed|unknown|unexpected|missing|bad|extra|too many|too few|not enough) (?:-\w+ )?"
    r"(?:options?|arguments?|operands?|predicate|primary|types?|date|dates?|characters?|eof|end|token|operator|newline|mode|number|expression|"
    r"transform|maximum|command|subcommand|flag|user|group|line|field|range|byte|file|input|choice|syntax|format|value|substitution|interpreter|directive|suffix)\b"
    r"|(?:option requires|cannot|can't|failed to|unable to|you (?:must|may not)|paths must|refusing to|expected an?|no such|is a directory)\b)"
    r"|^[\w./+-]{1,40}: [^\n]{1,160}\n(?:[\w./+-]{1,40}: )?Try [‘'`]",
    re.IGNORECASE,
)
"""How programs of a shell complain: their name, a colon, and what is wrong with the command."""
_EXIT = re.compile(
    r"(?:exit(?: |_)?code|exit status|return(?:_| )?code)\W{1,4}(-?\d+)", re.IGNORECASE
)
_RAISED = re.compile(r"(?:^|\n)[A-Za-z_][\w.]*(?:Error|Exception)(?::[^\n]*)?(?:\s*</\w+>)*\s*$")
_EMPTY = re.compile(
    r"""^[\W_]*(?:
        null|none|nil|nan|undefined|empty(?:\ (?:list|set|result|response|string))?|blank
      | (?:\(?no\b|0|zero|nothing|not\ any|without)(?:\ \w+){0,2}\ ?(?:results?|matches|match|hits?|entries|items|files|records?|rows?|data|output|documents?|
        found|returned|available|to\ show|selected|content|text|alerts?)?(?:\ (?:were|was|are))?(?:\ (?:found|returned|available|matched|selected|yet))?(?:\ for\ .{0,60})?
      | (?:exit(?:\ |_)?code|return(?:_|\ )?code)\W{1,4}0\W{0,4}(?:\(?no\ output\)?|execution\ succeeded)?(?:\W{0,4}(?:code\ )?output:?)?
      | 没有(?:找到|结果|记录|数据|匹配).{0,12} | 无(?:结果|记录|数据|匹配) | 未(?:找到|检索到|查到).{0,12} | 空 | 暂无.{0,8}
    )?[\W_]*$""",
    re.IGNORECASE | re.VERBOSE,
)


_PENDING = re.compile(
    r"\b(?:pending|queued|in progress|in-progress|processing|still running|running|not ready|not finished|waiting|scheduled|"
    r"initiali[sz]ing|warming|rolling out|deploying|installing|syncing|converging|provisioning|preparing|building|uploading|downloading|starting)\b|进行中|处理中|审批中|排队|等待|运行中|准备中",
    re.IGNORECASE,
)


_LOADING = re.compile(
    r"\b(?:loading|please wait|in[ _-]progress|still running|not (?:yet )?ready|not finished|queued)\b"
    r"|\W(?:state|status|phase)\W{1,5}(?:running|pending|starting|building)\b"
    r"|进行中|处理中|审批中|加载中|请稍候",
    re.IGNORECASE,
)


def is_pending(text: str) -> bool:
    """Whether a short result says that something is still under way, so that asking again makes sense."""
    size = len(text)
    if size <= _STATE_LENGTH and _PENDING.search(text) is not None:
        return True
    return size <= _SCREEN_LENGTH and _LOADING.search(text) is not None


def result_text(result: object) -> str:
    """A result as text: strings as they are, message content blocks joined, anything else canonical."""
    if type(result) is str:
        return result
    if result is None:
        return ""
    if isinstance(result, str):
        return str(result)
    return canonical_json(result)


_ERROR_HINTS = (
    "error", "exception", "fail", "fatal", "invalid", "unable", "cannot", "can't", "could", "denied", "reject",
    "traceback", "no such", " not ", "n't exist", "illegal", "unknown", "unrecognized", "missing", "tool",
    "错误", "失败", "无法", "不存在", "未找到", "未知", "无权", "拒绝", "false",
    "required", "permitted", "authorized", "verbatim", "try ", "operand", " must ", "unexpected", "too ", "refusing",
    "malformed", "timed out", "your ", "forbidden", "410",
)  # fmt: skip
_EMPTY_STARTS = frozenset("nzwubexr0没无未空暂")
_EDGES = " \t\r\n()[]{}<>\"'`.,:;!*-_=#|\\/"


def outcome_of(text: str, status: CallStatus) -> Outcome:
    """How a call ended: the host's word where it is specific, else what the text says."""
    if status == "success":
        return _read(text)
    if status != "error":
        return status
    if len(text) <= 120 and _EMPTY.match(text):
        return "error"
    head = text[:_HEAD]
    if _UNKNOWN.search(head):
        return "unknown_tool"
    if _BAD_ARGS.search(head):
        return "bad_args"
    return "transient" if _TRANSIENT.search(head) else "error"


def _read(text: str) -> Outcome:
    size = len(text)
    if size <= _HEAD and text[:1] in ("{", "[") and _hollow(text):
        return "empty"
    if size <= 120:
        first = text.lstrip(_EDGES)[:1]
        if (not first or first.lower() in _EMPTY_STARTS) and _EMPTY.match(text):
            return "empty"
    head = text if size <= _HEAD else text[:_HEAD]
    low = head.lower()
    code = _exit_code(low, text, size)
    if code is not None:  # the word of who ran it goes before what its output looks like
        return "ok" if code == "0" else "error"
    if _raised(text):
        return "error"
    if size <= 120 and _PASSING.search(low):
        return "transient"
    if not any(map(low.__contains__, _ERROR_HINTS)):
        return "ok"
    if _ERROR.search(head) or _COMMAND.search(head):
        if _UNKNOWN.search(head):
            return "unknown_tool"
        return "transient" if size < _HEAD and _TRANSIENT.search(head) else "error"
    return "unknown_tool" if size < _HEAD and _UNKNOWN.search(head) else "ok"


_KEYS = re.compile(r"[\"'][\w .-]*[\"']\s*:")
_CONTENT = re.compile(r"[A-Za-z1-9\u4e00-\u9fff]")
_NONE_FOUND = re.compile(
    r"[\"'](?:total|count|hits|size|found|numfound|total_?(?:count|results|hits|size)|num_?(?:results|found|hits)|result_?count)[\"']\s*:\s*0\b",
    re.IGNORECASE,
)
_HOLLOW = re.compile(r"\b(?:false|null|None|False)\b")


def _hollow(text: str) -> bool:
    """Whether a JSON text has a place for content and nothing in it: `{"total": 0, "items": []}`."""
    if "[]" not in text and "{}" not in text and "null" not in text:
        return False
    if "[]" in text and _NONE_FOUND.search(text) is not None:
        return True
    return _CONTENT.search(_HOLLOW.sub("", _KEYS.sub("", text))) is None


def _exit_code(low: str, text: str, size: int) -> str | None:
    """The exit code that a text tells of, at its head or at its end."""
    code = _EXIT.search(low) if "xit" in low or "return" in low else None
    if code is None and size > _HEAD:
        tail = text[-_HEAD:]
        if "xit" in tail or "return" in tail:
            code = _EXIT.search(tail)
    return None if code is None else code.group(1)


def _raised(text: str) -> bool:
    """Whether a text ends as a traceback does."""
    tail = text[-_HEAD:]
    return ("Error" in tail or "Exception" in tail) and _RAISED.search(tail) is not None
