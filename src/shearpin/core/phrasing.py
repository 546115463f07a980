"""Ways to put a nudge: what a wording adds to "what happened" and the advice. English and Chinese."""

# ruff: noqa: E501 - sentences are read whole
from __future__ import annotations

from typing import Final, Literal

__all__ = ["PLAIN", "WORDINGS", "added_words"]

PLAIN: Final = "plain"
"""The usual wording, which adds nothing."""
_ADDED: Final[dict[str, dict[str, str]]] = {
    "question": {
        "en": " Before your next call, say in one sentence what you expect to be different this time, and why.",
        "zh": "在下一次调用之前，请用一句话说明你期望这次有什么不同，以及为什么。",
    },
    "options": {
        "en": " Name two other ways to get on, choose one of them, and try it now.",
        "zh": "请列出另外两种做法，选择其中一种并立即尝试。",
    },
    "answer": {
        "en": " If what you have is enough, give your final answer now and say what is missing.",
        "zh": "如果已有信息足够，请立即给出最终答案，并说明缺少什么。",
    },
    "firm": {
        "en": " This is the last hint: the same call will not be run again.",
        "zh": "这是最后一次提示：同样的调用将不再执行。",
    },
}
WORDINGS: Final = (PLAIN, *_ADDED)
"""Names of the wordings, the usual one first."""


def added_words(wording: str, language: Literal["en", "zh"]) -> str:
    """What a wording adds to a nudge; nothing for one that is not known here.

    Example:
        >>> added_words("plain", "en")
        ''
    """
    return _ADDED.get(wording, {}).get(language, "")
