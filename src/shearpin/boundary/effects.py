"""Effects at most once: what is known of each, so that nothing is done twice unawares.

Contract: of any number of calls for the same effect, in any threads and processes that share the
store, at most one is told to go ahead (`Begun`) until that one is known not to have taken effect,
or the record has expired. Interval and count cap hold over the same threads and processes. A
process that dies between the effect and its record leaves it `in flight`; when its lease is over
the outcome is unknown, and stays so until somebody says what happened (`resolve`) or it expires.
Where the store fails, `begin` raises: it never answers as if nothing had been done.

    none -- begin --> in flight -- finish --> done
    in flight -- fail, known not to have happened --> none
    in flight -- fail, or lease over --> unknown -- resolve --> done or none
    done, unknown -- expiry --> none
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from shearpin import clock
from shearpin.boundary.effect_outputs import Kept, keep, recall
from shearpin.boundary.effect_pages import Page, PageEntry, effect_key, page_key, read_page
from shearpin.boundary.settings import Effects
from shearpin.errors import StoreError
from shearpin.stores.base import Store

__all__ = [
    "Beginning",
    "Begun",
    "EffectRecords",
    "Finished",
    "InFlight",
    "TooMany",
    "TooSoon",
    "Unknown",
]

T = TypeVar("T")

_ATTEMPTS: Final = 10_000
_MARGIN_SECONDS: Final = 60.0
_MOST_EFFECTS: Final = 2000


@dataclass(frozen=True, slots=True)
class Begun:
    """Go ahead, and say afterwards how it went: `finish` or `fail`.

    Attributes:
        page: where the record is.
        entry: the record.
        policy: it was begun under.
    """

    page: str
    entry: PageEntry
    policy: Effects


@dataclass(frozen=True, slots=True)
class Finished:
    """The effect has happened already.

    Attributes:
        output: what came of it then.
        exact: whether `output` is what it was; else a shortened, masked text of it.
        is_error: whether it was an answer that tells of an error.
        at: when, in seconds of the records' clock.
        duplicate: whether another call made it, so that this one asks for the same effect anew;
            False where the same call is carried out again, after a resume or a crash.
    """

    output: object
    exact: bool
    is_error: bool
    at: float
    duplicate: bool


@dataclass(frozen=True, slots=True)
class InFlight:
    """A call for the same effect is under way.

    Attributes:
        since: when it began.
    """

    since: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """The effect was tried, and whether it happened is not known: verify, then `resolve`.

    Attributes:
        since: when it was tried.
    """

    since: float


@dataclass(frozen=True, slots=True)
class TooSoon:
    """The tool had an effect in this thread just now.

    Attributes:
        wait_seconds: until it may have the next.
    """

    wait_seconds: float


@dataclass(frozen=True, slots=True)
class TooMany:
    """The tool has had as many effects in this thread as it may.

    Attributes:
        limit: how many that is.
    """

    limit: int


Beginning: TypeAlias = Begun | Finished | InFlight | Unknown | TooSoon | TooMany
"""What a call for an effect is told."""


class EffectRecords:
    """What is known of the effects of tools, by thread; the contract is the module's.

    Args:
        store: where the records are. With one that processes share they hold for all of them.
        now: the clock, in seconds since 1970, which all processes have to agree in.

    Example:
        >>> from shearpin.stores import MemoryStore
        >>> records, once = EffectRecords(MemoryStore()), Effects()
        >>> begun = records.begin("thread-1", "send_email", {"to": "ann"}, once, "call-1")
        >>> records.finish(begun, "sent")
        >>> records.begin("thread-1", "send_email", {"to": "ann"}, once, "call-1").output
        'sent'
    """

    def __init__(self, store: Store, now: clock.Clock = clock.epoch) -> None:
        self._store = store
        self._now = now

    @property
    def blocking(self) -> bool:
        """Whether an operation may wait, and so has no place on an event loop."""
        return self._store.blocking

    def begin(
        self, thread: str, tool: str, args: Mapping[str, object], policy: Effects, call: str
    ) -> Beginning:
        """Whether a call may go ahead.

        Args:
            thread: id of the conversation, in which effects are counted.
            tool: name of the tool.
            args: of the call; which of them matter the policy says.
            policy: for this tool; the same one for all its calls.
            call: id of the call. The same id means the same call carried out again.

        Raises:
            ConfigError: the policy's key does not fit the arguments.
            StoreError: the store failed: whether the effect has happened cannot be told.
        """
        page, key = page_key(thread, tool), effect_key(tool, args, policy)

        def look(found: Page) -> tuple[Beginning, bool]:
            now = self._now()
            known = found.entry(key)
            if known is not None:
                return self._known(page, known, call, now), False
            refused = _refusal(found, policy, now)
            if refused is not None:
                return refused, False
            entry = PageEntry(
                key, "in_flight", now, now, call, now + policy.lease_seconds, _kept_for(policy)
            )
            found.put(entry)
            return Begun(page, entry, policy), True

        return self._change(page, look)

    def finish(self, begun: Begun, output: object, is_error: bool = False) -> None:
        """The effect has happened. Also accepted after the lease is over.

        Args:
            begun: what `begin` gave.
            output: is kept as JSON, up to 64 KB; what JSON cannot say, or is longer, is kept as a
                shortened text with secrets masked.
            is_error: whether it is an answer that tells of an error.

        Raises:
            StoreError: the store failed; the record stays in flight.
        """
        entry = begun.entry
        ttl = entry.keep_seconds + _MARGIN_SECONDS
        # First what came of it, then that it is done: whoever reads the second finds the first.
        keep(self._store, self._output_key(begun.page, entry), output, is_error, ttl)
        self._settle(begun.page, entry, "done")

    def fail(self, begun: Begun, known_not_to_have_happened: bool) -> None:
        """The call failed.

        Args:
            begun: what `begin` gave.
            known_not_to_have_happened: True: it is as if it had never been begun. False: the
                outcome is unknown.

        Raises:
            StoreError: the store failed; the record stays in flight.
        """
        state = "none" if known_not_to_have_happened else "unknown"
        self._settle(begun.page, begun.entry, state)

    def resolve(
        self,
        thread: str,
        tool: str,
        args: Mapping[str, object],
        policy: Effects,
        *,
        happened: bool,
        output: object = None,
    ) -> bool:
        """Somebody has looked whether an effect of unknown outcome happened.

        Args:
            thread: as for `begin`.
            tool: as for `begin`.
            args: as the tool reads them, defaults included.
            policy: as for `begin`.
            happened: False: the next call for it may go ahead.
            output: what that next call gets, where it happened.

        Returns:
            Whether there was such an effect.

        Raises:
            StoreError: the store failed.
        """
        page, key = page_key(thread, tool), effect_key(tool, args, policy)
        known = self._read(page)[0].entry(key)
        if known is None or known.state_at(self._now()) != "unknown":
            return False
        if happened:
            self.finish(Begun(page, known, policy), output)
        else:
            self._settle(page, known, "none")
        return True

    def _known(self, page: str, known: PageEntry, call: str, now: float) -> Beginning:
        state = known.state_at(now)
        if state == "in_flight":
            return InFlight(known.since)
        if state == "unknown":
            return Unknown(known.since)
        kept = recall(self._store, self._output_key(page, known)) or Kept(None, False, False)
        return Finished(kept.output, kept.exact, kept.is_error, known.at, known.call != call)

    def _settle(self, page: str, entry: PageEntry, state: str) -> None:
        def change(found: Page) -> tuple[None, bool]:
            known = found.entry(entry.key)
            if known is not None and not known.is_same(entry):
                return None, False  # it had expired, and another call has begun since
            if state == "none":
                found.remove(entry.key)
            else:
                found.put(entry.moved(state, self._now()))
            return None, True

        self._change(page, change)

    def _change(self, page: str, change: Callable[[Page], tuple[T, bool]]) -> T:
        """Read, decide and write as one; again where another was faster."""
        for _ in range(_ATTEMPTS):
            found, version = self._read(page)
            answer, changed = change(found)
            if not changed:
                return answer
            ttl = found.last_until(self._now()) + _MARGIN_SECONDS
            if self._store.put(page, found.text(), expect=version, ttl_seconds=ttl) is not None:
                return answer
        raise StoreError(f"{page}: too many others change the records of this tool and thread")

    def _read(self, page: str) -> tuple[Page, int]:
        entry = self._store.get(page)
        if entry is None:
            return Page({}), 0
        return read_page(page, entry.value, self._now()), entry.version

    @staticmethod
    def _output_key(page: str, entry: PageEntry) -> str:
        return f"effect-output:{page.partition(':')[2]}:{entry.key}:{entry.since!r}"


def _kept_for(policy: Effects) -> float:
    return max(policy.expiry_seconds, policy.min_interval_seconds)


def _refusal(found: Page, policy: Effects, now: float) -> TooMany | TooSoon | None:
    counted = [e for e in found.entries() if now - e.at <= policy.expiry_seconds]
    most = _MOST_EFFECTS if policy.at_most is None else min(policy.at_most, _MOST_EFFECTS)
    if len(counted) >= most:
        return TooMany(most)
    latest = max((entry.at for entry in found.entries()), default=None)
    if latest is not None and policy.min_interval_seconds:
        wait = policy.min_interval_seconds - max(0.0, now - latest)
        if wait > 0:
            return TooSoon(wait)
    return None
