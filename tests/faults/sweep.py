# SPDX-License-Identifier: Apache-2.0
"""Fails every call to the system that the commands of commands.py make, one at a time.

    sweep.py --build build/release            a sample, the same every time: what CI runs
    sweep.py --build build/release --all      every point; allocations once for all who call alike
    sweep.py ... --command plan --kind write  a part of it

A command that meets a fault ends well with its usual results, or with code 2 and an error that says
why. Then old files are as they were, no temporary file is left, no process runs on, and what was
finished is where it was asked for, in a folder that the command names, or on standard output.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import commands as listed

KINDS = ["open", "read", "write", "short", "sync", "rename", "thread", "allocation"]
# The disk stays full, or no file can be opened any more, from this call on.
GOES_ON = ["open", "write"]
TIME_LIMIT_S = 120
MARK = "STEPCAST_FAULT_SANDBOX"
KEPT = re.compile(r"^the finished (.*) is kept in (.*)$", re.MULTILINE)
KEPT_RUN = re.compile(r"^the files of the finished run are kept in (.*)$", re.MULTILINE)
FOLLOWS = re.compile(r"the finished (.*) follows on standard output")


class Point(collections.namedtuple("Point", "kind number goes_on")):
    def __str__(self):
        return f"{self.kind}:{self.number}{'+' if self.goes_on else ''}"


class Outcome:
    def __init__(self, code, out, error, files, left, log, orphans, kept):
        self.code, self.out, self.error = code, out, error
        self.files, self.left, self.log, self.orphans, self.kept = files, left, log, orphans, kept


def marked_processes(sandbox):
    mark = f"{MARK}={sandbox}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if mark in pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            pass
    return found


def orphans_of(sandbox):
    """Finds what still runs although it was given time to end, and ends it."""
    until = time.monotonic() + 10
    while (found := marked_processes(sandbox)) and time.monotonic() < until:
        time.sleep(0.05)
    for process in found:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
    return found


def files_under(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file()}


def stdin_of(sandbox, command):
    """A file of its own for the process, which closes with this one's."""
    return open(sandbox / "in" / command.stdin, "rb") if command.stdin else subprocess.DEVNULL


class Sweep:
    def __init__(self, build):
        self.build = build
        self.library = build / "tests" / "libfault_points.so"
        self.tried = set()  # callers whose allocations another command has failed already

    def run(self, command, point=None, counts=None, stacks=None):
        sandbox = pathlib.Path(tempfile.mkdtemp(prefix="sweep-"))
        try:
            return self.run_in(sandbox, command, point, counts, stacks)
        finally:
            shutil.rmtree(sandbox, ignore_errors=True)

    def run_in(self, sandbox, command, point, counts, stacks):
        for name in ("in", "out", "tmp"):
            (sandbox / name).mkdir()
        for name, text in command.inputs.items():
            (sandbox / "in" / name).write_text(text)
        for name in command.outputs:
            text = command.old.get(name, listed.OLD)
            if text is not None and name != "run":
                (sandbox / "out" / name).write_text(text)
        log = sandbox / "log"
        environment = {**os.environ, **command.environment, "LD_PRELOAD": str(self.library),
                       "STEPCAST_FAULT_PROGRAM": command.program, "STEPCAST_FAULT_LOG": str(log),
                       "TMPDIR": str(sandbox / "tmp"), MARK: str(sandbox)}
        if point:
            environment["STEPCAST_FAULT"] = str(point)
        if counts is not None:
            environment["STEPCAST_FAULT_COUNTS"] = str(sandbox / "counts")
        if stacks is not None:
            environment["STEPCAST_FAULT_STACKS"] = str(sandbox / "stacks")
        process = subprocess.Popen([self.build / "stepcast", *command.words], cwd=sandbox,
                                   env=environment, stdin=stdin_of(sandbox, command),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, error = process.communicate(timeout=TIME_LIMIT_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            code = "a hang"
        orphans = orphans_of(sandbox) if command.launches else []
        error = error.decode(errors="replace")
        if counts is not None:
            for line in (sandbox / "counts").read_text().split("\n"):
                if line:
                    kind, number = line.split()
                    counts[kind] = max(counts.get(kind, 0), int(number))
        if stacks is not None and (sandbox / "stacks").exists():
            for line in (sandbox / "stacks").read_text().splitlines():
                number, callers = line.split()
                stacks.append((int(number), callers))
        kept = {}
        for name, place in KEPT.findall(error):
            path = pathlib.Path(place)
            kept[name] = path.read_bytes() if path.exists() else None
        for _, place in KEPT.findall(error):
            if pathlib.Path(place).parent.name.startswith("stepcast-kept-"):
                shutil.rmtree(pathlib.Path(place).parent, ignore_errors=True)
        runs = [pathlib.Path(place) for place in KEPT_RUN.findall(error)]
        for path in runs:
            kept["run"] = b"" if path.is_dir() and list(path.iterdir()) else None
            shutil.rmtree(path, ignore_errors=True)
        left = [str(path.relative_to(sandbox)) for path in (sandbox / "tmp").rglob("*")]
        return Outcome(code, out, error, files_under(sandbox / "out"), left,
                       log.read_text().splitlines() if log.exists() else [], orphans, kept)

    def reference(self, command):
        """The usual results, how many calls of each kind, and one allocation of each caller."""
        counts, stacks = {}, []
        first = self.run(command, counts=counts)
        numbers = dict(counts)
        if not command.launches:
            again = {}
            self.run(command, counts=again)
            # Allocations may differ by a few: hash tables grow by addresses.
            for kind in KINDS:
                if kind != "allocation" and again[kind] != numbers[kind]:
                    sys.exit(f"{command.name}: {numbers[kind]} and {again[kind]} calls of {kind}")
        self.run(command, stacks=stacks)
        return first, numbers, stacks


def journal_is_due(command):
    """The points of a calibration that ends early stay beside its profile."""
    return command.name.startswith("calibrate")


def faults_of(command, usual, outcome, point):
    """Says what is wrong with how the command met the fault."""
    wrong = []
    if outcome.orphans:
        wrong.append(f"processes run on: {outcome.orphans}")
    left = outcome.left
    if point.kind == "allocation":
        # Memory may end where nothing can be tidied up; the next run does it.
        left = [name for name in left if not name.startswith("tmp/stepcast-scratch-")]
    if left:
        wrong.append(f"left in the temporary folder: {left}")
    expected = set(usual.files)
    for name in command.outputs:
        if name != "run" and command.old.get(name, listed.OLD) is not None:
            expected.add(name)
    extra = [name for name in outcome.files if name not in expected]
    if journal_is_due(command):
        extra = [name for name in extra if ".journal/" not in name]
    if extra:
        wrong.append(f"left beside the results: {extra}")
    if outcome.code == usual.code:
        if outcome.out != usual.out and not command.measures:
            wrong.append("ended as usual, and standard output is another")
        for name, content in usual.files.items():
            now = outcome.files.get(name)
            same = now == content or command.measures
            if now is None or not same or now == listed.OLD.encode():
                wrong.append(f"ended as usual, and {name} is another")
        return wrong
    if outcome.code != 2:
        return wrong + [f"ended with {outcome.code}: {outcome.error[-300:]}"]
    if not outcome.error.startswith("error: ") and "\nerror: " not in outcome.error:
        wrong.append(f"says no error: {outcome.error[-300:]}")
    for name in expected:
        old = command.old.get(name, listed.OLD)
        now = outcome.files.get(name)
        before = None if old is None or name.startswith("run/") else old.encode()
        known = [before, usual.files.get(name)]
        if now not in known and not (command.measures and now is not None and len(now) > 0):
            wrong.append(f"{name} is neither what it was nor the result")
    return wrong + lost(command, usual, outcome, point)


def lost(command, usual, outcome, point):
    """Finished results that are nowhere. They were finished when the fault met a file of theirs."""
    met = [tuple(line.split(" ", 1)) for line in outcome.log]

    def delivers(kind, path):
        # A baseline is read before it is written, and results get their names only at last.
        if kind == "read" or (kind == "open" and not re.search(r"[.][0-9]+-[0-9]+$", path)):
            return False
        if path.startswith("pipe:"):
            return not command.launches  # else it may be one to the ranks
        result = "/out/" in path and not path.endswith("(deleted)") and ".journal" not in path
        return result or "stepcast-kept-" in path

    if command.program != "stepcast" or command.at_once or not any(delivers(*one) for one in met):
        return []
    wrong = []
    results = {name: content for name, content in usual.files.items()
               if name in command.outputs or name.startswith("run/")}
    if usual.out:
        results["standard-output.txt"] = usual.out
    names = []
    for line in FOLLOWS.findall(outcome.error):
        names += line.split(", ")
    for name, content in results.items():
        base = name.split("/")[-1]
        found = outcome.files.get(name) if name != "standard-output.txt" else outcome.out
        places = [found, outcome.kept.get(base)]
        if any(place == content or (command.measures and place and place != listed.OLD.encode())
               for place in places):
            continue
        if base in names and (content in outcome.out or command.measures):
            continue
        wrong.append(f"{name} is finished and lost (met {met})")
    return wrong


def sample_of(points, command, number, seed):
    """Draws points, spread over the kinds: one seed gives the same ones every time."""
    chosen = []
    generator = random.Random(hashlib.sha256(f"{seed} {command.name}".encode()).digest())
    by_kind = collections.defaultdict(list)
    for point in points:
        by_kind[point.kind].append(point)
    kinds = [kind for kind in KINDS if by_kind[kind]]
    while len(chosen) < min(number, len(points)):
        for kind in kinds:
            if by_kind[kind] and len(chosen) < number:
                chosen.append(by_kind[kind].pop(generator.randrange(len(by_kind[kind]))))
    return chosen


def points_of(numbers, stacks, kinds, tried):
    points = []
    for kind in kinds:
        if kind == "allocation":
            points += [Point(kind, number, False) for number, callers in stacks
                       if callers not in tried]
            tried.update(callers for _, callers in stacks)
            continue
        points += [Point(kind, number, False) for number in range(1, numbers[kind] + 1)]
        if kind in GOES_ON:
            points += [Point(kind, number, True) for number in range(1, numbers[kind] + 1)]
    return points


def try_point(sweep, command, usual, point):
    outcome = sweep.run(command, point)
    if not outcome.log:
        # A measuring program does not always make as many calls, and a full disk does not meet what
        # goes to standard output.
        excused = command.launches or command.measures or point.goes_on or \
            point.kind == "allocation"
        return "not reached", [] if excused else ["was not reached"]
    wrong = faults_of(command, usual, outcome, point)
    return ("as usual" if outcome.code == usual.code else "an error"), wrong


def check_counts(command, numbers, stacks):
    wrong = []
    for kind, least in command.least.items():
        found = len(stacks) if kind == "allocation" else numbers[kind]
        if found < least:
            wrong.append(f"{command.name}: makes {found} calls of {kind}, of {least} at the least")
    if not command.least:
        wrong.append(f"{command.name}: states no least number of calls")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="the folder of the built programs")
    parser.add_argument("--all", action="store_true", help="every point, not a sample")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--command", action="append", help="only commands of this name")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only calls of this kind")
    parser.add_argument("--point", help="one point, as write:3 or open:5+: prints what happens")
    parser.add_argument("--parts", default="1/1", help="2/4: the second of four parts of it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    sweep = Sweep(arguments.build.resolve())
    all_commands = listed.commands(sweep.build)
    if arguments.command:
        all_commands = [one for one in all_commands if one.name in arguments.command]
    part, parts = (int(number) for number in arguments.parts.split("/"))
    failures, tried, met = [], collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        references = list(pool.map(sweep.reference, all_commands))
        jobs = []
        for command, (usual, numbers, stacks) in zip(all_commands, references):
            failures += check_counts(command, numbers, stacks)
            if usual.code not in (0, 3, 4) or usual.left or usual.orphans:
                failures.append(f"{command.name}: without a fault: {usual.code} {usual.left} "
                                f"{usual.error}")
            if arguments.point:
                kind, number = arguments.point.split(":")
                point = Point(kind, int(number.rstrip("+")), number.endswith("+"))
                outcome = sweep.run(command, point)
                print(command.name, outcome.code, outcome.error, outcome.log, outcome.left,
                      outcome.kept, sorted(outcome.files), sep="\n")
                print(faults_of(command, usual, outcome, point))
                continue
            points = points_of(numbers, stacks, arguments.kind or KINDS, sweep.tried)
            print(f"{command.name}: " + ", ".join(f"{numbers[kind]} {kind}" for kind in KINDS) +
                  f" of {len(stacks)} callers, {len(points)} points", flush=True)
            if not arguments.all:
                points = sample_of(points, command, 2 if command.launches else 10, arguments.seed)
            jobs += [(command, usual, point) for point in points]
        jobs = jobs[part - 1::parts]
        futures = {pool.submit(try_point, sweep, *job): job for job in jobs}
        for future in concurrent.futures.as_completed(futures):
            command, _, point = futures[future]
            how, wrong = future.result()
            tried[point.kind] += 1
            met[how] += 1
            for text in wrong:
                failures.append(f"{command.name}, {point}: {text}")
                print(failures[-1], flush=True)
    print(f"{sum(tried.values())} points of {len(all_commands)} commands: " +
          ", ".join(f"{tried[kind]} {kind}" for kind in KINDS if tried[kind]))
    print(", ".join(f"{number} {how}" for how, number in sorted(met.items())))
    if not arguments.point and sum(tried.values()) != len(jobs):
        failures.append("not every point was tried")
    for text in failures:
        print(f"FAILED {text}", file=sys.stderr)
    print(f"{len(failures)} faults are not met as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
