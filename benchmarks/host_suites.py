"""Run the hosts' own test suites under guard, and list what fails only there (promise P2).

    python benchmarks/host_suites.py --suite all
    python benchmarks/host_suites.py --suite langgraph --state checkpointer --jobs 4
    python benchmarks/host_suites.py --fast

Takes the source distributions of the *installed* langgraph, langchain and langgraph-prebuilt from
the package registry, keeps their tests, and runs them twice against the installed packages: plain,
and with every compiled graph and entrypoint guarded by `host_suites_plugin.py` at default settings.
A test that passes plain and does not pass guarded is run again alone, both ways; it is a new
failure if that confirms it. Exit code 1 if there is one, 2 if the suites could not be run.

`--fast` leaves out the slow tests, and runs plain only those tests that failed guarded. What the
suites need beyond langgraph is the dependency group `suites`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
KNOWN = HERE / "host_suites_known.txt"
TIMEOUT_SECONDS = 1800
FAILED = ("failed", "error")


@dataclass(frozen=True)
class Suite:
    """Where a suite's tests are, and what to leave out where time is short."""

    distribution: str
    tests: str
    slow: tuple[str, ...] = ()


SUITES = {
    "langgraph": Suite(
        "langgraph",
        "tests",
        # One saver of three, and no test that mostly sleeps.
        slow=(
            "sqlite",
            "batch_two_processes",
            "imp_task_cancel",
            "max_concurrency",
            "parallel_node_execution",
            "pending_writes_resume",
            "py_async_with_cancel_behavior",
            "step_timeout_on_stream_hang",
        ),
    ),
    "langchain-agents": Suite(
        "langchain", "tests/unit_tests/agents", slow=("shell", "file_search", "pii")
    ),
    "prebuilt": Suite("langgraph-prebuilt", "tests"),
}


class SuiteError(Exception):
    """A suite could not be fetched or run at all."""


class Outcome(NamedTuple):
    """What one test did: passed, failed, error or skipped, with the failure's text."""

    status: str
    detail: str


MISSING = Outcome("missing", "")


@dataclass
class Run:
    """One run of a suite."""

    outcomes: dict[str, Outcome]
    guarded: int
    seconds: float

    def summary(self) -> str:
        """Counts by outcome, and the time."""
        counts = Counter(outcome.status for outcome in self.outcomes.values())
        parts = [f"{counts[status]} {status}" for status in sorted(counts)]
        return ", ".join(parts) + f" in {self.seconds:.0f} s"


@dataclass
class Comparison:
    """Tests that differ between the plain and the guarded run."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def unpack(suite: Suite, cache: Path) -> Path:
    """The folder with the tests of the installed version, fetched once."""
    version = metadata.version(suite.distribution)
    home = cache / f"{suite.distribution}-{version}"
    if home.exists():
        return home
    download = cache / "sdist"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:"]
    command += ["--no-deps", "--dest", str(download), f"{suite.distribution}=={version}"]
    if subprocess.run(command, check=False).returncode:
        raise SuiteError(f"pip could not download the sdist of {suite.distribution} {version}")
    stem = suite.distribution.replace("-", "[-_]")
    archives = [p for p in download.iterdir() if re.match(rf"{stem}-{version}\.tar", p.name)]
    if not archives:
        raise SuiteError(f"pip downloaded no archive for {suite.distribution} {version}")
    unpacked = cache / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archives[0]) as archive:
        archive.extractall(unpacked, filter="data")
    (root,) = unpacked.iterdir()
    staging = home.with_suffix(".partial")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    # Only the tests: the packages under test are the installed ones.
    shutil.copytree(root / "tests", staging / "tests")
    shutil.copy(root / "pyproject.toml", staging)
    shutil.rmtree(unpacked)
    staging.rename(home)
    return home


def run_tests(
    home: Path, tests: list[str], guard: str, jobs: int, leave_out: tuple[str, ...] = ()
) -> Run:
    """Run some tests of a suite and read what each did; `guard` is `off` or a state option."""
    results = home / f"results-{guard}.jsonl"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *tests, "-q", "--tb=short", "-o", "addopts="]
    command += ["-p", "host_suites_plugin", "-p", "no:cacheprovider", "-p", "no:codspeed"]
    command += [f"--shearpin-guard={guard}", f"--shearpin-results={results}"]
    command += ["-k", " and ".join(f"not {word}" for word in leave_out)] if leave_out else []
    # Also a single job is one of xdist, which survives a test that kills its process.
    command += ["-n", str(jobs)]
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path = os.pathsep.join([str(HERE), *(str(Path(part).resolve()) for part in given)])
    env = {**os.environ, "PYTHONPATH": path, "NO_DOCKER": "true", "LANGSMITH_TRACING": "false"}
    log = home / f"log-{guard}.txt"
    started = time.monotonic()
    with log.open("w") as out:
        code = subprocess.run(
            command, cwd=home, env=env, stdout=out, stderr=out, timeout=TIMEOUT_SECONDS, check=False
        ).returncode
    if code not in (0, 1) or not results.exists():
        tail = "\n".join(log.read_text("utf-8").splitlines()[-30:])
        raise SuiteError(f"pytest ended with code {code}:\n{tail}")
    return read_results(results, time.monotonic() - started)


def read_results(results: Path, seconds: float) -> Run:
    """Parse the plugin's file: a line per test, and one with the number of guarded graphs."""
    outcomes: dict[str, Outcome] = {}
    guarded = 0
    for line in results.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if "guarded" in entry:
            guarded = entry["guarded"]
        else:
            outcomes[entry["id"]] = Outcome(entry["outcome"], entry["detail"])
    return Run(outcomes, guarded, seconds)


def differing(plain: Run, guarded: Run) -> list[str]:
    """Tests that pass plain and do anything else, or nothing at all, guarded."""
    passed = (test for test, outcome in plain.outcomes.items() if outcome.status == "passed")
    return [test for test in passed if guarded.outcomes.get(test, MISSING).status != "passed"]


def gist(outcome: Outcome) -> str:
    """How a failure's first error line begins, to tell whether two failures are the same."""
    lines = [line for line in outcome.detail.splitlines() if line.startswith("E ")]
    return lines[0][:40] if lines else outcome.status


def compare(home: Path, plain: Run, guarded: Run, options: Options) -> Comparison:
    """Sort the differences; a suspect counts if it fails guarded and passes plain alone."""
    found = Comparison()
    suspects = differing(plain, guarded)
    if suspects:
        again = run_tests(home, suspects, options.state, 1)
        still = differing(Run(dict.fromkeys(suspects, Outcome("passed", "")), 0, 0.0), again)
        calm = run_tests(home, still, "off", 1) if still else Run({}, 0, 0.0)
        confirmed = differing(calm, again)
        known = known_failures(options.state)
        for test in confirmed:
            raw = "pending_writes" in again.outcomes.get(test, MISSING).detail
            (found.known if raw and bare(test) in known else found.new).append(test)
        found.flaky = [test for test in suspects if test not in confirmed]
        guarded.outcomes.update(again.outcomes)
    for test, outcome in plain.outcomes.items():
        other = guarded.outcomes.get(test)
        if other is None or outcome.status not in FAILED or other.status not in FAILED:
            continue
        if gist(outcome) != gist(other):
            found.changed.append(test)
    return found


def bare(test: str) -> str:
    """A test's id without its parameters."""
    return test.partition("[")[0]


def known_failures(state: str) -> set[str]:
    """Tests that are expected to see the state that a guard keeps in the user's checkpointer."""
    if state == "memory" or not KNOWN.exists():
        return set()
    lines = (line.partition("#")[0].strip() for line in KNOWN.read_text("utf-8").splitlines())
    return {line for line in lines if line}


@dataclass(frozen=True)
class Options:
    """The command line, parsed."""

    suites: tuple[str, ...]
    state: str
    jobs: int
    fast: bool
    cache: Path
    tests: tuple[str, ...]


def parse(arguments: list[str] | None = None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", choices=[*SUITES, "all"], default="langgraph")
    parser.add_argument("--state", choices=["memory", "checkpointer", "auto"], default="memory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fast", action="store_true", help="the part that CI runs")
    parser.add_argument("--cache", type=Path, default=HERE.parent / "build" / "host-suites")
    parser.add_argument("tests", nargs="*", help="only these files or tests of the suite")
    given = parser.parse_args(arguments)
    chosen = tuple(SUITES) if given.suite == "all" else (given.suite,)
    return Options(
        chosen, given.state, given.jobs, given.fast, given.cache.resolve(), tuple(given.tests)
    )


def check(name: str, options: Options) -> bool:
    """Run one suite both ways, print the difference, and say whether there is no new failure."""
    suite = SUITES[name]
    home = unpack(suite, options.cache)
    tests = list(options.tests or (suite.tests,))
    print(f"{name}: {suite.distribution} {metadata.version(suite.distribution)}", flush=True)
    guarded_first = options.fast
    if guarded_first:
        guarded = run_tests(home, tests, options.state, options.jobs, suite.slow)
        failed = [t for t, o in guarded.outcomes.items() if o.status in FAILED]
        plain = run_tests(home, failed, "off", 1) if failed else Run({}, 0, 0.0)
    else:
        plain = run_tests(home, tests, "off", options.jobs)
        guarded = run_tests(home, tests, options.state, options.jobs)
    label = "plain (of the failures)" if guarded_first else "plain"
    print(f"  {label}: {plain.summary()}")
    print(f"  guarded: {guarded.summary()}; {guarded.guarded} graphs, state={options.state}")
    found = compare(home, plain, guarded, options)
    report("new failures", found.new, guarded)
    report("known failures (they compare raw pending writes)", found.known, None)
    report("not confirmed when run alone", found.flaky, None)
    report("fail both ways, with another message", found.changed, None)
    if not guarded.guarded:
        raise SuiteError(f"{name}: no graph was guarded, so the run proves nothing")
    return not found.new


def report(title: str, tests: list[str], run: Run | None) -> None:
    """Print one list of tests, with the failures' texts where the run is given."""
    print(f"  {title}: {len(tests)}", flush=True)
    for test in sorted(tests):
        print(f"    {test}")
        if run is not None and test in run.outcomes:
            tail = run.outcomes[test].detail.splitlines()[-25:]
            print("\n".join(f"      | {line}" for line in tail))


def main() -> int:
    """Run the chosen suites; 0, or 1 for new failures, or 2 where a suite did not run."""
    options = parse()
    options.cache.mkdir(parents=True, exist_ok=True)
    try:
        clean = [check(name, options) for name in options.suites]
    except (SuiteError, subprocess.TimeoutExpired, metadata.PackageNotFoundError) as error:
        print(f"host_suites: {error}", file=sys.stderr)
        return 2
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
