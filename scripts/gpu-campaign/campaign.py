#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU in slices of a few minutes each, and keeps what is finished.

    scripts/gpu-campaign.sh run OUT [--resume FILE] [--deadline SECONDS] [--slice NAME]

Runs in a copy of the source tree, with the archive of programs that `prepare` wrote. A step that an
earlier slice has finished is not repeated: give --resume that slice's campaign.tar.gz. A step is
begun only if the time for it is left, and every end, also by a signal, leaves in OUT:

    campaign.tar.gz  all results and logs, and the journal of a calibration that was ended
    profile.json     once the card is calibrated
    summary.md       forecast, executor and PyTorch beside each other
    campaign.log     what happened, and at its end what the campaign has brought

While a step runs, campaign.tar.gz is written every 20 seconds, so that a slice that is killed
without notice loses no more than the step that ran. The cluster and the scenarios follow from the
card: what does not fit into its memory is left out, with a word why.

Steps come in three slices, and each goes on where the one before has ended:

    first        one thin cut through everything: doctor, the tests of kernels, a profile measured
                 for two small models, both of them validated (one with its losses against one rank
                 in fp32), and PyTorch's steps and kernels beside them
    wider        the tests of NCCL, a profile measured for all scenarios, and step time, memory and
                 PyTorch's steps of the others
    sanitizers   some of the tests under compute-sanitizer (memcheck, racecheck)

A step that hangs, crashes, or takes the machine with it comes again after the others of its slice,
with up to twice its time, and is given up after the second time; its logs are kept. Without a
profile of this card validation and PyTorch take the one that is shipped for it, and come once more
when there is one.

Without --slice a call begins with the first step that is not finished and goes on as far as time
allows, which wastes none. On a machine that is lent bare and takes back eight files:

    scripts/gpu-campaign.sh run $OUT                                      # first, then again:
    scripts/gpu-campaign.sh run $OUT --resume build/campaign.tar.gz       # a copy of the last one

The exit code is 75 when a step is left to another slice (call it again), else 0 when every step is
finished, 1 when one has failed, 2 for wrong arguments or no GPU.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import sys
import tarfile
import tempfile

import machine as machines
import steps as plan
import summary
from tries import Tries, read

ARCHIVE = "campaign.tar.gz"
CLOSING_S = 25  # of a slice, to end the last step and write the archive
TICK_S = 20     # between two archives while a step runs
DEADLINE_S = 545  # of the ten minutes of a lease, with what comes before and after
FORECAST_S = 60   # limit of a forecast, which takes a second
FORECASTS_S = 30  # it takes no longer to forecast all scenarios
MOST_LOG_BYTES = 256 << 10  # of a log in the archive: its end
TOPOLOGIES = plan.ROOT / "topologies"
PROFILES = plan.ROOT / "calibrate/profiles"
FINISHED, FAILED, OUT_OF_TIME = 0, 1, 75
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Refused(Exception):
    """The campaign cannot begin as it was called."""


class Ended(BaseException):
    """A signal has come."""

    def __init__(self, number):
        super().__init__(f"signal {number}")
        self.number = number


def unpack(archive, folder):
    try:
        with tarfile.open(archive) as packed:
            # Older Pythons have no filter. The archives are this program's own.
            options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            packed.extractall(folder, **options)
    except (OSError, tarfile.TarError) as error:
        raise Refused(f"{archive}: {error}") from error


def add_file(packed, file):
    """A log that a program has filled is cut, so that the archive stays small."""
    if file.suffix != ".log" or file.stat().st_size <= MOST_LOG_BYTES:
        packed.add(file, file.name)
        return
    with file.open("rb") as log:
        log.seek(-MOST_LOG_BYTES, os.SEEK_END)
        end = b"(the beginning is left out)\n" + log.read(MOST_LOG_BYTES)
    member = packed.gettarinfo(file, file.name)
    member.size = len(end)
    packed.addfile(member, io.BytesIO(end))


class Campaign:
    def __init__(self, options, machine, work):
        self.options, self.machine = options, machine
        self.began = machine.now()
        self.out = options.out
        self.state = work / "state"  # what the archive holds; the steps run in it
        self.unpacked = work / "unpacked"
        self.programs = work / "programs"
        self.tries = None  # from the archive
        self.shipped = None  # the profile that is shipped for the card
        self.told_of = set()  # steps and scenarios that were left out with a word
        self.steps = []

    def tell(self, line):
        print(line, flush=True)
        with (self.state / "campaign.log").open("a") as log:
            log.write(line + "\n")

    def seconds_left(self):
        return self.options.deadline - CLOSING_S - (self.machine.now() - self.began)

    # Results and tries that are kept

    def resume(self):
        self.state.mkdir()
        self.out.mkdir(parents=True, exist_ok=True)
        earlier = self.options.resume or self.out / ARCHIVE
        if self.options.resume or earlier.exists():
            unpack(earlier, self.state)
        self.tries = Tries(self.state)

    def save(self):
        """Replaces the archive as a whole, so that there is always one."""
        waiting = self.out / (ARCHIVE + ".part")
        with tarfile.open(waiting, "w:gz") as packed:
            for file in sorted(self.state.iterdir()):
                add_file(packed, file)
        os.replace(waiting, self.out / ARCHIVE)

    def save_beside_step(self):
        try:
            self.save()
        except OSError:  # the step has just removed a file: the next one comes soon
            pass

    def close(self):
        for words in self.write_goals() if self.steps else ():
            self.tell(words)
        self.write_summary()
        for name in ("profile.json", "summary.md", "campaign.log"):
            if (self.state / name).exists():
                shutil.copyfile(self.state / name, self.out / name)
        self.save()

    def write_summary(self):
        try:
            (self.state / "summary.md").write_text(summary.page(self.state))
        except SystemExit as reason:  # a result that is no JSON
            self.tell(f"no summary: {reason}")

    def write_goals(self):
        """Says of each goal what there is of it, or which steps have failed to bring it."""
        words = {}
        for goal, name in plan.GOALS.items():
            steps = [step for step in self.steps if step.brings == goal]
            brought = [step.name for step in steps if self.has_brought(step)]
            why = [f"{step.name} {self.tries.words(step.name) or 'has not run'}" for step in steps]
            words[goal] = (f"{name}: by {', '.join(brought)}" if brought else
                           f"no {name.removeprefix('a ')}: {'; '.join(why)}")
        (self.state / "goals.json").write_text(json.dumps(words, indent=1) + "\n")
        return words.values()

    def has_brought(self, step):
        """Comparisons count as far as they went."""
        return (step.name in self.tries.done or
                (step.brings == "comparison" and summary.has_times(self.state / step.result)))

    # The card, its cluster and its scenarios

    def meet_card(self):
        """Remembers the card; refuses to mix results of two."""
        try:
            name, memory = self.machine.card()
            cluster = self.options.cluster or machines.cluster_of(
                machines.accelerator_of(name, memory, TOPOLOGIES), TOPOLOGIES)
        except machines.NoCard as reason:
            raise Refused(str(reason)) from reason
        card = {"name": name, "memory_bytes": memory, "cluster": cluster,
                "attention": self.options.attention}
        before = read(self.state / "card.json", card)
        if before != card:
            words = "'{name}' as part of {cluster}, with attention {attention}"
            raise Refused(f"the earlier results are of {words.format(**before)}, and this is "
                          f"{words.format(**card)}: begin again in another folder, without "
                          "--resume")
        (self.state / "card.json").write_text(json.dumps(card) + "\n")
        self.shipped = machines.shipped_profile(cluster, TOPOLOGIES, PROFILES)
        self.tell(f"{name}, as part of {cluster}")
        return cluster

    def make_programs(self):
        """Wrappers, so that the archive's libraries are in the path of its programs alone."""
        unpack(self.options.programs, self.unpacked)
        named = self.unpacked / "lib/needed.txt"
        needed = named.read_text().split() if named.exists() else []
        folders, missing = machines.library_folders(needed)
        for name in missing:
            self.tell(f"{name}: this machine has none, and what needs it says so")
        path = ":".join([str(self.unpacked / "lib"), *folders])
        self.programs.mkdir()
        for program in sorted((self.unpacked / "bin").iterdir()):
            wrapper = self.programs / program.name
            wrapper.write_text(
                "#!/bin/sh\n"
                f'LD_LIBRARY_PATH="{path}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
                f"STEPCAST_ATTENTION={self.options.attention}\n"
                f'export LD_LIBRARY_PATH STEPCAST_ATTENTION\nexec "{program}" "$@"\n')
            wrapper.chmod(0o755)

    def scenarios(self, cluster, names):
        """Files by name of those that fit into the card's memory."""
        known_file = self.state / "fits.json"
        known = read(known_file, {})
        stated = self.state / "scenarios"
        stated.mkdir(exist_ok=True)
        out = {}
        for name in names:
            text = (plan.CAMPAIGN / f"{name}.json").read_text()
            scenario = stated / f"{name}.json"
            scenario.write_text(text.replace('"CLUSTER"', f'"{cluster}"'))
            if name not in known:
                known[name] = self.why_left_out(scenario)
                known_file.write_text(json.dumps(known, indent=1) + "\n")
            if not known[name]:
                out[name] = scenario
            elif name not in self.told_of:
                self.told_of.add(name)
                self.tell(f"{name}: left out: {known[name]}")
        return out

    def why_left_out(self, scenario):
        """"" where it fits, and where nothing says that it does not. The forecast is that of the
        data sheet."""
        log = self.state / "fits.log"
        result = self.state / "forecast.json"
        result.unlink(missing_ok=True)
        code = self.machine.run(
            [self.programs / "stepcast", "predict", scenario, "--data", plan.ROOT, "--profile",
             "none", "--format", "json", "-o", result], self.state, log,
            min(FORECAST_S, max(1, self.seconds_left())), TICK_S, self.save_beside_step)
        if code == 3 and result.exists():
            forecast = read(result, {})
            gib = [forecast[key] / 2**30 for key in ("peak_device_bytes", "device_memory_bytes")]
            return "it needs {:.1f} GiB, of {:.1f} GiB that the card has".format(*gib)
        if code != 0:
            how = "does not end" if code is None else f"ends with exit code {code}"
            self.tell(f"{scenario.stem}: stepcast predict {how}: fits.log says why")
        return ""

    # The steps

    def run_steps(self, cluster):
        """The exit code of this slice."""
        programs, options = self.programs, self.options
        names = sorted(file.stem for file in plan.CAMPAIGN.glob("*.json"))
        first = self.scenarios(cluster, plan.FIRST)
        self.steps = list(plan.first(programs, first, options))
        self.run_while_time_is_left()
        if options.slice == "first":
            return self.code()
        if self.seconds_left() < FORECASTS_S:  # which tell what fits
            self.code()
            self.tell("another slice does the wider steps")
            return OUT_OF_TIME
        self.save()
        self.steps = list(plan.all_steps(programs, self.scenarios(cluster, names), options))
        self.run_while_time_is_left()
        return self.code()

    def to_do(self):
        has_profile = (self.state / plan.PROFILE).exists()
        steps = [step for step in self.steps if self.options.slice in ("all", step.slice)]
        return [step for step in self.tries.to_do(steps, has_profile) if self.has_tool(step)]

    def has_tool(self, step):
        if not step.tool or machines.find_program(step.tool):
            return True
        if step.name not in self.told_of:
            self.told_of.add(step.name)
            self.tell(f"{step.name}: left out: this machine has no {step.tool}")
        return False

    def needs_s(self, step):
        return self.tries.needs_s(step, self.options.deadline - CLOSING_S)

    def run_while_time_is_left(self):
        while step := next((step for step in self.to_do()
                            if self.needs_s(step) <= self.seconds_left()), None):
            self.run_now(step)

    def code(self):
        """Tells what is left to other slices, too."""
        left = self.to_do()
        for step in left:
            self.tell(f"{step.name}: {max(0, self.seconds_left()):.0f} s are left, and it needs "
                      f"{self.needs_s(step):.0f}: another slice does it")
        chosen = [step.name for step in self.steps if self.options.slice in ("all", step.slice)]
        failed = [name for name in chosen if self.tries.done.get(name, {"code": 0})["code"] != 0 or
                  (name not in self.tries.done and self.tries.given_up(name))]
        return OUT_OF_TIME if left else FAILED if failed else FINISHED

    def run_now(self, step):
        limit = min(self.seconds_left(), self.tries.limit_s(step))
        profile = self.state / plan.PROFILE
        own = profile.exists() or self.shipped is None
        if step.profile and not own:
            self.tell(f"{step.name}: takes {self.shipped.stem}, the profile that is shipped")
        command = step.command_with(plan.PROFILE if own else self.shipped, limit)
        if step.tool:
            command = (machines.find_program(step.tool), *command[1:])
        log = self.new_log(step.name)
        result = self.state / step.result
        before = state_of(result)
        self.tries.begin(step, limit)
        self.write_goals()
        self.save()  # with the step before, and for the case that the machine does not survive this
        began = self.machine.now()
        try:
            code = self.machine.run(command, self.state, log, limit, TICK_S, self.save_beside_step)
        except Ended:
            self.tries.end(step, "cut off", round(self.machine.now() - began), "by a signal")
            raise
        seconds = round(self.machine.now() - began)
        why = f"exit code {code} after {seconds} s{last_line(log) if code != 0 else ''}"
        if code is None:
            whole = limit >= min(self.tries.limit_s(step), self.options.deadline - CLOSING_S)
            how, why = "hung" if whole else "cut off", f"ended after {seconds} s"
            self.tries.end(step, how, seconds, why)
            self.tell(f"{step.name}: {why}: "
                      + ("it took too long" if whole else "the slice is over"))
            return
        self.tell(f"{step.name}: {why}")
        if state_of(result) != before and not (step.goes_on and code != 0):
            self.tries.finish(step, code, seconds, "own" if own else self.shipped.stem)
        else:
            self.tries.end(step, "crashed", seconds, why)
            if self.tries.given_up(step.name):
                self.tell(f"{step.name}: is given up: {self.tries.words(step.name)}")

    def new_log(self, name):
        """Logs of earlier runs are kept."""
        log = self.state / f"{name}.log"
        if log.exists():
            run = len(self.tries.runs.get(name, []))
            log.rename(self.state / f"{name}-run-{run}.log")
        log.write_text("")
        return log


def state_of(file):
    """Changes whenever the file is written."""
    if not file.exists():
        return None
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def last_line(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu-campaign.sh run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT", help="folder of the results")
    parser.add_argument("--programs", type=pathlib.Path, metavar="FILE",
                        default=plan.ROOT / "build/gpu-campaign.tar.gz",
                        help="the archive that `prepare` wrote (build/gpu-campaign.tar.gz)")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FILE",
                        help="the campaign.tar.gz of an earlier slice (that of OUT)")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="SECONDS",
                        help=f"end after so long ({DEADLINE_S})")
    parser.add_argument("--slice", choices=("all", *plan.SLICES), default="all",
                        help="only the steps of this slice (all)")
    parser.add_argument("--cluster", help="a cluster of this card (by the card's name)")
    parser.add_argument("--budget", type=float, default=240, metavar="SECONDS",
                        help="of the calibration, for shapes around those of the scenarios (240)")
    parser.add_argument("--first-budget", type=float, default=120, metavar="SECONDS",
                        help="likewise, of the first one, for two small models (120)")
    parser.add_argument("--attention", default="atomics",
                        choices=("atomics", "fastest", "cudnn", "own"),
                        help="STEPCAST_ATTENTION of the programs (atomics, as PyTorch has it)")
    parser.add_argument("--gpus", type=int, default=1,
                        help="with two or more, NCCL's collectives are measured too (1)")
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    if options.deadline <= CLOSING_S:
        parser.error(f"--deadline: more than {CLOSING_S} seconds")
    return options


def run(options, machine):
    with tempfile.TemporaryDirectory(prefix="gpu-campaign-") as work:
        campaign = Campaign(options, machine, pathlib.Path(work))
        try:
            campaign.resume()
            cluster = campaign.meet_card()
            campaign.make_programs()
        except Refused as reason:
            print(f"gpu-campaign.sh: {reason}", file=sys.stderr)
            return 2
        try:
            return campaign.run_steps(cluster)
        except Refused as reason:
            campaign.tell(str(reason))
            return FAILED
        except Ended as end:
            campaign.tell(f"ended by signal {end.number}")
            return 128 + end.number
        finally:
            with undisturbed():
                campaign.close()


@contextlib.contextmanager
def undisturbed():
    """Signals that ask for the end wait for it: it is near."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end(number, _frame):
    raise Ended(number)


def main(arguments=None):
    for number in SIGNALS:
        signal.signal(number, end)
    return run(parse(arguments), machines.Machine())


if __name__ == "__main__":
    sys.exit(main())
