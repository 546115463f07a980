"""The structured result of a tool call, whether it worked or not.

Contract: what the model reads (`text`) is short, says what can be done, and holds neither stack
traces nor secrets. The original exception stays in `error`, for artifacts and reports of this
process; it is not part of `to_json`, and so of nothing that is saved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from shearpin.boundary.categories import ErrorCategory
from shearpin.boundary.wording import failure_words, substitute_words

__all__ = ["ResultArtifact", "ToolResult"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a tool call.

    Attributes:
        success: whether there is an output to work with; also true where it came from a fallback.
        category: of the failure; None where there was none.
        tool_name: of the tool that was called.
        output: what the tool, or its fallback, gave back; None where there is nothing.
        error_type: of the failure, as in `Classification`; None where there was none. Four are of
            the boundary's own: `in_progress`, `outcome_unknown`, `too_soon` and `too_many`, for an
            effect that was not to happen again.
        error_detail: one short, masked line about it; None where there was none.
        retry_after_seconds: how long the other side asked to wait; None where it did not say.
        attempts: how often the tool was run; 0 where it was not.
        elapsed: seconds from the first attempt to the answer, waits included.
        degraded: what stands in for the real thing: `cached`, `static`, `tool:` and the name of
            another tool, or `earlier` where an effect that has happened already was not repeated.
            None for the real thing.
        age_seconds: how old a `cached` or `earlier` output is; None for others.
        outcome_unknown: whether the failed call may have taken effect all the same.
        error: the exception itself, for reports.

    Example:
        >>> result = ToolResult(False, ErrorCategory.RETRYABLE, "search", error_type="rate_limit",
        ...                     retry_after_seconds=30.0, attempts=3, elapsed=4.2)
        >>> print(result.text())
        search failed (rate limit, tried 3 times in 4 s). The service asks to wait 30 s. Do something else first, or answer without it.
    """  # noqa: E501 - what the model reads is one line

    success: bool
    category: ErrorCategory | None
    tool_name: str
    output: object = None
    error_type: str | None = None
    error_detail: str | None = None
    retry_after_seconds: float | None = None
    attempts: int = 1
    elapsed: float = 0.0
    degraded: str | None = None
    age_seconds: float | None = None
    outcome_unknown: bool = False
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def text(self, language: Literal["en", "zh"] = "en") -> str:
        """What the model reads: the output, or what failed and what can be done now.

        Args:
            language: of our own words; the output is left as it is.
        """
        if not self.success:
            return failure_words(
                language,
                tool=self.tool_name,
                kind=self.error_type,
                category=self.category,
                detail=self.error_detail,
                attempts=self.attempts,
                elapsed=self.elapsed,
                retry_after=self.retry_after_seconds,
                unknown=self.outcome_unknown,
            )
        output = self.output
        text = output if isinstance(output, str) else _json_text(output)
        if self.degraded is None:
            return text
        note = substitute_words(
            language, self.degraded, self.tool_name, self.error_type, self.age_seconds
        )
        return f"{note}\n{text}"

    def __str__(self) -> str:
        """What a model reads where a tool gives a result back as its output."""
        return self.text()

    def to_json(self) -> dict[str, object]:
        """The result as plain JSON values, without the exception; `from_json` reads it back."""
        return {
            "success": self.success,
            "category": None if self.category is None else self.category.value,
            "tool_name": self.tool_name,
            "output": json.loads(_json_text(self.output)),
            "error_type": self.error_type,
            "error_detail": self.error_detail,
            "retry_after_seconds": self.retry_after_seconds,
            "attempts": self.attempts,
            "elapsed": self.elapsed,
            "degraded": self.degraded,
            "age_seconds": self.age_seconds,
            "outcome_unknown": self.outcome_unknown,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> ToolResult:
        """The result that a mapping of `to_json`, such as a message's artifact, tells of.

        In the process where it was made, the artifact still has the exception; once it was saved
        and loaded, it has not.

        Raises:
            ValueError: it is no such mapping.
        """
        if isinstance(data, ResultArtifact):
            return data.result
        try:
            category = data["category"]
            values = {name: data[name] for name in _PLAIN}
            return cls(
                category=None if category is None else ErrorCategory(cast("str", category)),
                **cast("dict[str, Any]", values),  # the names are ours, and so were the values
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no result of a tool: {error}") from error


_PLAIN = tuple(
    name for name in ToolResult.__dataclass_fields__ if name not in ("category", "error")
)


class ResultArtifact(dict[str, object]):
    """A result as plain values that can be saved, with the result itself for this process.

    Attributes:
        result: the result, with its exception.
    """

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.to_json())
        self.result = result

    def __reduce__(self) -> tuple[type[dict[str, object]], tuple[dict[str, object]]]:
        return dict, (dict(self),)  # an exception need not pickle, and must not be saved


def _json_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(str(value), ensure_ascii=False)
