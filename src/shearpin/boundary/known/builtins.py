"""Python's own exceptions, and those of its standard library.

Contract: a programming error is fatal, because nothing that an agent says mends code. What a tool
raises on purpose (`ValueError`, `RuntimeError`, a class of its own) is an answer that an agent can
react to. So is a file that is not there or a division by zero: both come from the arguments.
A `KeyError` or `IndexError` counts as a programming error: they are hardly ever raised on purpose;
beneath another exception that was, that one decides.
"""

from __future__ import annotations

import errno

from shearpin.boundary.known.kinds import Family, Kind, Weight, degradable, fatal, retryable

__all__ = ["ERRNO", "FAMILIES", "NAME_LOOKUP"]

_MISTAKE = fatal("programming", weight=Weight.MISTAKE)
_SPOKEN = degradable("invalid_arguments", weight=Weight.SPOKEN)
_UNSENT = retryable("network", safe=True)
_CUT = retryable("network")

ERRNO: dict[int, Kind] = {
    errno.ECONNREFUSED: _UNSENT,
    errno.EHOSTUNREACH: _UNSENT,
    errno.ENETUNREACH: _UNSENT,
    errno.EADDRNOTAVAIL: _UNSENT,
    errno.EHOSTDOWN: _UNSENT,
    errno.ENETDOWN: _CUT,
    errno.ECONNRESET: _CUT,
    errno.ECONNABORTED: _CUT,
    errno.EPIPE: _CUT,
    errno.ESHUTDOWN: _CUT,
    errno.ENETRESET: _CUT,
    errno.ETIMEDOUT: retryable("timeout"),
    errno.EAGAIN: retryable("overloaded"),
    errno.EBUSY: retryable("conflict"),
    errno.EMFILE: retryable("overloaded", safe=True),
    errno.ENFILE: retryable("overloaded", safe=True),
    errno.ENOSPC: degradable("unavailable"),
    errno.EDQUOT: degradable("quota"),
}
"""Numbers of the operating system. That a peer cannot be reached means that nothing was sent."""

NAME_LOOKUP: Kind = _UNSENT
"""No address was found for a name: nothing was sent."""

_BUILTINS: dict[str, Kind] = {
    "ConnectionRefusedError": _UNSENT,
    "ConnectionError": _CUT,
    "TimeoutError": retryable("timeout", weight=Weight.BROAD),
    "InterruptedError": retryable("network", weight=Weight.BROAD),
    "BlockingIOError": retryable("overloaded", weight=Weight.BROAD),
    "FileNotFoundError": degradable("not_found"),
    "IsADirectoryError": degradable("invalid_arguments"),
    "NotADirectoryError": degradable("invalid_arguments"),
    "FileExistsError": degradable("conflict"),
    "PermissionError": degradable("permission"),
    "ChildProcessError": degradable("tool_error"),
    "ProcessLookupError": degradable("not_found"),
    "EOFError": degradable("bad_output", weight=Weight.SPOKEN),
    "OSError": degradable("tool_error", weight=Weight.SPOKEN),
    "UnicodeError": _SPOKEN,
    "ValueError": _SPOKEN,
    "ArithmeticError": _SPOKEN,
    "MemoryError": fatal("resources"),
    "RecursionError": _MISTAKE,
    "NotImplementedError": _MISTAKE,
    "TypeError": _MISTAKE,
    "AttributeError": _MISTAKE,
    "NameError": _MISTAKE,
    "ImportError": _MISTAKE,
    "AssertionError": _MISTAKE,
    "SyntaxError": _MISTAKE,
    "LookupError": _MISTAKE,
    "ReferenceError": _MISTAKE,
    "BufferError": _MISTAKE,
    "SystemError": _MISTAKE,
    "StopIteration": _MISTAKE,
    "StopAsyncIteration": _MISTAKE,
    "Warning": _MISTAKE,
    "RuntimeError": degradable("unknown", weight=Weight.NOTHING),
    "Exception": degradable("unknown", weight=Weight.NOTHING),
}

_STANDARD: dict[str, Kind] = {
    "JSONDecodeError": degradable("bad_output"),
    "ExpatError": degradable("bad_output"),
    "ParseError": degradable("bad_output"),
    "BadZipFile": degradable("bad_output"),
    "gaierror": NAME_LOOKUP,
    "herror": NAME_LOOKUP,
    "SSLCertVerificationError": degradable("certificate"),
    "SSLError": retryable("network", weight=Weight.BROAD),
    "IncompleteReadError": _CUT,
    "BrokenBarrierError": fatal("programming"),
    "InvalidStateError": fatal("programming"),
    "QueueFull": retryable("overloaded", safe=True),
    "Full": retryable("overloaded", safe=True),
    "BrokenProcessPool": retryable("server_error"),
    "TimeoutExpired": retryable("timeout"),
    "CalledProcessError": degradable("tool_error"),
    "SubprocessError": degradable("tool_error", weight=Weight.SPOKEN),
    "PanicException": fatal("programming"),
}

FAMILIES = (
    Family(
        (
            "json", "simplejson", "orjson", "xml", "pyexpat", "zipfile", "socket", "ssl", "asyncio",
            "_queue", "queue", "concurrent.futures", "subprocess", "threading", "pyo3_runtime",
        ),
        _STANDARD,
    ),
    Family(("builtins",), _BUILTINS),
)  # fmt: skip
