"""What is known of a tool: declared by the author, else from MCP annotations, else from its name.

A verb in a name is weak evidence: it decides whether a *new* call counts as work, never on its own
whether something may be blocked.
"""

# ruff: noqa: E501, ISC004 - lists of words are read whole
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shearpin.core.checks import flag, texts
from shearpin.errors import ConfigError

__all__ = [
    "AMBIGUOUS_ARGUMENTS",
    "IGNORED_ARGUMENTS",
    "PAYLOAD_ARGUMENTS",
    "Effect",
    "ToolFacts",
    "command_word",
    "effect_of",
    "is_check",
    "sleeps",
]

Effect: TypeAlias = Literal["read", "write", "run", "wait", "think", "handoff"]
"""What a call does: `run` executes something of which no more is known."""

IGNORED_ARGUMENTS = frozenset(
    {
        "thought", "thoughts", "thinking", "reasoning", "rationale", "reason", "explanation", "justification",
        "task_progress", "progress_note", "commentary", "remark", "next_step", "why", "intent", "motivation",
        "tool_call_reason", "user_intent", "思考", "理由", "原因", "说明",
    }
)  # fmt: skip
"""Argument names that comment on a call instead of being part of it."""

AMBIGUOUS_ARGUMENTS = frozenset({"description", "comment", "note", "summary", "title", "label"})
"""Commentary only next to a command or code that says what is really done."""

PAYLOAD_ARGUMENTS = frozenset(
    {"command", "cmd", "code", "script", "bash", "shell", "sql", "query", "expression"}
)


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What an author declares about a tool. None leaves it to the annotations or to the name.

    Attributes:
        read_only: it changes nothing; coming back to it is at most worth a hint.
        polling: it is meant to be called until its answer changes.
        idempotent: calling it again with the same arguments has no further effect.
        destructive: its effect cannot be undone.
        key: names of the arguments that identify a call, or a function from arguments to any value.
            None: all arguments but the ignorable ones.
        ignore: further argument names that are commentary for this tool.

    Raises:
        ConfigError: a value is wrong, or a tool is said to be read-only and destructive.

    Example:
        >>> ToolFacts(read_only=True, polling=True).polling
        True
    """

    read_only: bool | None = None
    polling: bool | None = None
    idempotent: bool | None = None
    destructive: bool | None = None
    key: tuple[str, ...] | Callable[[Mapping[str, object]], object] | None = None
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("read_only", "polling", "idempotent", "destructive"):
            flag(f"ToolFacts.{name}", getattr(self, name), or_none=True)
        if self.read_only and self.destructive:
            raise ConfigError("ToolFacts: read_only and destructive exclude each other; drop one")
        if self.key is not None and not callable(self.key):
            object.__setattr__(self, "key", texts("ToolFacts.key", self.key, "url"))
        object.__setattr__(self, "ignore", texts("ToolFacts.ignore", self.ignore, "memo"))

    @classmethod
    def from_annotations(cls, annotations: Mapping[str, object]) -> ToolFacts:
        """Facts from MCP tool annotations (`readOnlyHint`, `idempotentHint`, `destructiveHint`)."""

        def flag(name: str) -> bool | None:
            value = annotations.get(name)
            return value if isinstance(value, bool) else None

        read_only = flag("readOnlyHint")
        destructive = None if read_only else flag("destructiveHint")
        return cls(read_only=read_only, idempotent=flag("idempotentHint"), destructive=destructive)


_VERBS: tuple[tuple[Effect, str], ...] = (
    ("wait", r"wait|sleep|pause|delay|等待|休眠"),
    ("think", r"think|plan|todo|reflect|reason|brainstorm|note_to_self|思考|计划|规划|反思"),
    ("handoff", r"transfer|handoff|hand_off|delegate|route|转交|移交"),
    (
        "write",
        r"write|edit|update|create|delete|remove|add|insert|set|put|post|send|book|cancel|patch|replace|"
        r"apply|commit|move|rename|save|submit|upload|attach|reserve|modify|append|install|deploy|publish|"
        r"tag|assign|close|open_pr|merge|pay|charge|refund|order|buy|register|schedule|upsert|store|log|draw|"
        r"generate|make|fix|format|convert|exchange|produce|emit|push|enqueue|dispatch|trigger|start|stop|restart|"
        r"grant|revoke|enable|disable|prepend|rewrite|refactor|sign|approve|reject|archive|import|export|sync|"
        r"migrate|provision|scale|rollback|configure|lock|unlock|notify|reply|comment|label|invite|allocate|"
        r"ensure|copy|print|translate|"
        r"修改|更新|写入?|创建|删除|添加|新增|设置|发送|通知|上传|提交|预订|取消|保存|生成|移动|安装|绘制|登记",
    ),
    (
        "read",
        r"read|get|list|search|find|look|lookup|view|show|fetch|query|describe|check|inspect|status|count|"
        r"recall|retrieve|browse|grep|glob|cat|ls|head|tail|open|scrape|screenshot|preview|lint|validate|verify|"
        r"查|查询|查看|读取|获取|搜索|检索|列出|浏览|校验|检查|统计|计算|预览",
    ),
    (
        "run",
        r"bash|shell|exec|execute|run|python|terminal|command|cmd|sh|eval|test|build|simulate|运行|执行",
    ),
)
_SPLIT = re.compile(r"[^0-9A-Za-z\u4e00-\u9fff]+|(?<=[a-z0-9])(?=[A-Z])")
_ASCII_VERBS: dict[str, Effect] = {}
_CHINESE_VERBS: list[tuple[str, Effect]] = []
for _effect, _words in _VERBS:
    for _word in _words.split("|"):
        if _word.isascii():
            _ASCII_VERBS.setdefault(_word, _effect)
        else:
            _CHINESE_VERBS.append((_word.rstrip("?"), _effect))

_SHELL_READS = frozenset(
    "cat ls head tail grep rg find wc less more stat file du df tree pwd which type env printenv ps top "
    "diff cmp md5sum sha256sum whoami date uname id history sort uniq awk nl tac strings od hexdump "
    "locate echo printf test true".split()
)
_SHELL_WRITES = frozenset(
    "rm mv cp mkdir rmdir touch tee ln chmod chown sed patch git pip npm apt apt-get make kill install "
    "unzip tar wget curl".split()
)
_GIT_READS = frozenset("status log diff show branch blame grep ls-files rev-parse describe".split())
_INTERPRETERS = ("perl", "python", "ruby", "node")
_WRITING = re.compile(
    r"\b(?:perl|ruby)\b[^\n|]*\s-\w*i\b|\.write\(|write_(?:text|bytes)\(|writeFile|"
    r"\bopen\([^)\n]*,\s*['\"][wax]b?\+?['\"]"
)
"""How a script says that it changes files: in place, or by writing them."""
_SEGMENT = re.compile(r"&&|\|\|?|;|\n")
_REDIRECT = re.compile(r"(?<![0-9&<>])>{1,2}(?!\s*(?:/dev/null|&))")


def effect_of(tool: str, args: Mapping[str, object] | str, facts: ToolFacts | None) -> Effect:
    """What a call does, from declared facts, the command it carries, or the verb in its name."""
    if facts is not None:
        if facts.read_only:
            return "read"
        if facts.destructive or facts.read_only is False:
            return "wait" if facts.polling else "write"
    effect = _effect_of_name(tool)
    if isinstance(args, str):
        return effect
    if effect != "run":
        return effect if _OPERATIONS.isdisjoint(args) else _effect_of_operation(args, effect)
    command = _command(args)
    if command is not None:
        return effect_of_command(command)
    return _effect_of_operation(args, "write" if "patch" in args else "run")


_OPERATIONS = frozenset(
    {"op", "operation", "action", "method", "verb", "sql", "statement", "操作", "动作"}
)
_STATEMENTS: dict[str, Effect] = {
    "select": "read", "with": "read", "describe": "read", "desc": "read", "explain": "read",
    "head": "read", "options": "read", "patch": "write", "alter": "write", "drop": "write",
    "truncate": "write", "begin": "run", "modify": "write", "call": "run",
}  # fmt: skip


def _effect_of_operation(args: Mapping[str, object], otherwise: Effect) -> Effect:
    """What a call of a many-purpose tool does, from the argument that names the operation."""
    for name, value in args.items():
        if name in _OPERATIONS and isinstance(value, str):
            words = value[:40].split(None, 1)
            effect = _effect_of_word(words[0].lower()) if words else "run"
            return otherwise if effect == "run" else effect
    return otherwise


def _effect_of_word(word: str) -> Effect:
    return _STATEMENTS.get(word) or _effect_of_name(word)


_SLEEPS = re.compile(r"\bsleep\s+\d")


def sleeps(args: Mapping[str, object] | str) -> bool:
    """Whether a call's command waits before it looks."""
    command = _command(args)
    return command is not None and _SLEEPS.search(command) is not None


_NAMES: dict[str, Effect] = {}


def _effect_of_name(tool: str) -> Effect:
    known = _NAMES.get(tool)
    if known is None:
        if len(_NAMES) > 1024:  # names come from models: keep the memory bounded
            _NAMES.clear()
        known = _NAMES[tool] = _read_name(tool)
    return known


def _read_name(tool: str) -> Effect:
    words = [word.lower() for word in _SPLIT.split(tool) if word]
    for word in words:
        effect = _ASCII_VERBS.get(word)
        if effect is not None:
            return effect
    for word, effect in _CHINESE_VERBS:
        if word in tool:
            return effect
    return "run"


def _command(args: Mapping[str, object] | str) -> str | None:
    if isinstance(args, str):
        return None
    for name in ("command", "cmd", "bash", "shell"):
        value = args.get(name)
        if isinstance(value, str):
            return value
    return None


_CHANGE_OF_FOLDER = re.compile(r"^\s*(?:cd\s+\S+\s*(?:&&|;)\s*)+")


def command_word(args: Mapping[str, object] | str) -> str | None:
    """The first word of the command that a call carries, None where it carries none."""
    command = _command(args)
    if command is None:
        return None
    words = _CHANGE_OF_FOLDER.sub("", command[:200]).split()
    while len(words) > 1 and ("=" in words[0] or words[0] in ("sudo", "time", "env")):
        words = words[1:]
    return words[0][:40] if words else ""


_CHECKS = re.compile(
    r"(?:^|&&|\|\|?|;|\n)\s*(?:\w+=\S*\s+|(?:sudo|time|timeout\s+\S+|env)\s+)*"
    r"(?:(?:python[\d.]*|npx|npm|yarn|pnpm|go|cargo|make|mvn|uv|poetry|bundle|dotnet|\S*gradlew?)\s+(?:-m\s+|run\s+|exec\s+)*)?"
    r"(?:\S*/)?(?:py\.?test|(?:run|unit|c)?[_-]?tests?|(?:py|es)?lint|mypy|pyright|ruff|flake8|tox|nox|jest|vitest|tsc|rspec)(?:\.\w+)?(?:\s|$)"
)


def is_check(args: Mapping[str, object] | str) -> bool:
    """Whether a call's command tests or lints: what it says is about the work, not about the call.

    Example:
        >>> is_check({"command": "cd app && pytest -q"}), is_check({"command": "ls tests"})
        (True, False)
    """
    command = _command(args)
    return command is not None and _CHECKS.search(command[:400]) is not None


def effect_of_command(command: str) -> Effect:
    """What a shell command does, from the first word of each of its parts."""
    result: Effect = "read"
    if len(command) > 4000:
        return "run"
    for segment in _SEGMENT.split(command):
        words = segment.split(None, 3)
        while words and ("=" in words[0] or words[0] in ("xargs", "sudo", "time", "env")):
            words = words[1:]
        if not words or words[0] in ("cd", "set", "export", "source", "#"):
            continue
        first = words[0].rsplit("/", 1)[-1]
        if first in ("sleep", "wait"):
            result = "wait" if result == "read" else result
        elif _REDIRECT.search(segment) is not None:
            return "write"
        elif (first == "git" and len(words) > 1 and words[1] in _GIT_READS) or (
            first == "sed" and "-n" in segment and "-i" not in segment
        ):
            continue
        elif first in _SHELL_WRITES or (
            first.startswith(_INTERPRETERS) and _WRITING.search(command) is not None
        ):
            return "write"
        elif first not in _SHELL_READS:
            result = "run"
    return result
