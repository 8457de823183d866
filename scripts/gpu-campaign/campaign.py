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
    campaign.log     what happened

While a step runs, campaign.tar.gz is written every 20 seconds, so that a slice that is killed
without notice loses no more than the step that ran. The cluster and the scenarios follow from the
card: what does not fit into its memory is left out, with a word why.

Slices, each of ten minutes, and what each must bring:

    tests        doctor, the tests of kernels and NCCL, and some of them under compute-sanitizer
                 (memcheck, racecheck): nothing after it is worth the time unless these pass
    calibration  profile.json, measured for all scenarios
    validation   losses of one small scenario against one rank in fp32; step time and memory of
                 the other scenarios
    pytorch      products and attention in PyTorch, and the steps of two scenarios, compiled and
                 eager; repeat it until no scenario is left

Without --slice a call begins with the first step that is not finished and goes on as far as time
allows, which wastes none. On a machine that is lent bare and takes back eight files:

    scripts/gpu-campaign.sh run $OUT                                      # first, then again:
    scripts/gpu-campaign.sh run $OUT --resume build/campaign.tar.gz       # a copy of the last one

The exit code is 0 when every step of the slice is finished, 75 when time ran out before (call it
again), 1 when a step has failed, 2 for wrong arguments or no GPU.
"""

import argparse
import contextlib
import dataclasses
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

SLICES = ("tests", "calibration", "validation", "pytorch")
ARCHIVE = "campaign.tar.gz"
CLOSING_S = 25  # of a slice, to end the last step and write the archive
TICK_S = 20     # between two archives while a step runs
DEADLINE_S = 570
TOPOLOGIES = plan.ROOT / "topologies"
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


def read(file, otherwise):
    return json.loads(file.read_text()) if file.exists() else otherwise


class Campaign:
    def __init__(self, options, machine, work):
        self.options, self.machine = options, machine
        self.began = machine.now()
        self.out = options.out
        self.state = work / "state"  # what the archive holds; the steps run in it
        self.unpacked = work / "unpacked"
        self.programs = work / "programs"

    def tell(self, line):
        print(line, flush=True)
        with (self.state / "campaign.log").open("a") as log:
            log.write(line + "\n")

    def seconds_left(self):
        return self.options.deadline - CLOSING_S - (self.machine.now() - self.began)

    # What is kept

    def resume(self):
        self.state.mkdir()
        self.out.mkdir(parents=True, exist_ok=True)
        earlier = self.options.resume or self.out / ARCHIVE
        if self.options.resume or earlier.exists():
            unpack(earlier, self.state)

    def save(self):
        """Replaces the archive as a whole, so that there is always one."""
        waiting = self.out / (ARCHIVE + ".part")
        with tarfile.open(waiting, "w:gz") as packed:
            for file in sorted(self.state.iterdir()):
                packed.add(file, file.name)
        os.replace(waiting, self.out / ARCHIVE)

    def save_beside_step(self):
        try:
            self.save()
        except OSError:  # the step has just removed a file: the next one comes soon
            pass

    def close(self):
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
        self.tell(f"{name}, as part of {cluster}")
        return cluster

    def make_programs(self):
        """Wrappers, so that the archive's libraries are in the path of its programs alone."""
        unpack(self.options.programs, self.unpacked)
        named = self.unpacked / "lib/needed.txt"
        needed = named.read_text().split() if named.exists() else []
        folders = [str(self.unpacked / "lib"), *machines.library_folders(needed)]
        path = ":".join(folders)
        self.programs.mkdir()
        for program in sorted((self.unpacked / "bin").iterdir()):
            wrapper = self.programs / program.name
            wrapper.write_text(
                "#!/bin/sh\n"
                f'LD_LIBRARY_PATH="{path}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
                f"STEPCAST_ATTENTION={self.options.attention}\n"
                f'export LD_LIBRARY_PATH STEPCAST_ATTENTION\nexec "{program}" "$@"\n')
            wrapper.chmod(0o755)

    def scenarios(self, cluster):
        """Files by name of the scenarios that fit into the card's memory."""
        known_file = self.state / "fits.json"
        known = read(known_file, {})
        stated = self.state / "scenarios"
        stated.mkdir(exist_ok=True)
        out = {}
        for file in sorted(plan.CAMPAIGN.glob("*.json")):
            scenario = stated / file.name
            scenario.write_text(file.read_text().replace('"CLUSTER"', f'"{cluster}"'))
            if file.stem not in known:
                known[file.stem] = self.why_left_out(scenario)
                known_file.write_text(json.dumps(known, indent=1) + "\n")
            if known[file.stem]:
                self.tell(f"{file.stem}: left out: {known[file.stem]}")
            else:
                out[file.stem] = scenario
        return out

    def why_left_out(self, scenario):
        """"" where it fits. The forecast is that of the data sheet, as is that of `validate`."""
        log = self.state / "fits.log"
        result = self.state / "forecast.json"
        code = self.machine.run(
            [self.programs / "stepcast", "predict", scenario, "--data", plan.ROOT, "--profile",
             "none", "--format", "json", "-o", result], self.state, log, 60, TICK_S,
            self.save_beside_step)
        forecast = read(result, {})
        result.unlink(missing_ok=True)
        if code == 3:
            gib = [forecast[key] / 2**30 for key in ("peak_device_bytes", "device_memory_bytes")]
            return "it needs {:.1f} GiB, of {:.1f} GiB that the card has".format(*gib)
        if code != 0:
            raise Refused(f"stepcast predict {scenario.name}: exit code {code}\n"
                          + log.read_text()[-2000:])
        return ""

    # The steps

    def run_steps(self, cluster):
        """The exit code of this slice."""
        done_file = self.state / "done.json"
        done = read(done_file, {})
        failed = missed = False
        for step in plan.all_steps(self.programs, self.scenarios(cluster), self.options):
            if self.options.slice not in ("all", step.slice):
                continue
            if step.name not in done:
                outcome = self.run_step(step, done)
                missed = missed or outcome is OUT_OF_TIME
                failed = failed or outcome is FAILED
                if isinstance(outcome, dict):
                    done[step.name] = outcome
                    done_file.write_text(json.dumps(done, indent=1) + "\n")
                self.save()
            failed = failed or done.get(step.name, {"code": 0})["code"] != 0
        return FAILED if failed else OUT_OF_TIME if missed else FINISHED

    def run_step(self, step, done):
        """What is remembered of a step that has ended, else FAILED, OUT_OF_TIME, or FINISHED where
        there is nothing to remember."""
        likes = [one["seconds"] for one in done.values() if step.kind and one["kind"] == step.kind]
        needs = max([step.needs_s, *(min(seconds, step.limit_s) for seconds in likes)])
        if step.tool:
            found = machines.find_program(step.tool)
            if found is None:
                self.tell(f"{step.name}: left out: this machine has no {step.tool}")
                return FINISHED  # another machine may have it
            step = dataclasses.replace(step, command=(found, *step.command[1:]))
        if step.after and not (self.state / step.after).exists():
            self.tell(f"{step.name}: waits for {step.after}")
            return OUT_OF_TIME
        if self.seconds_left() < needs:
            self.tell(f"{step.name}: {max(0, self.seconds_left()):.0f} s are left, and it needs "
                      f"{needs}: another slice does it")
            return OUT_OF_TIME
        return self.run_now(step)

    def run_now(self, step):
        ended_file = self.state / "ended.json"
        ended = read(ended_file, [])  # steps that took longer than their limit
        limit = self.seconds_left()
        if step.name not in ended:
            limit = min(limit, step.limit_s)
        log = self.state / f"{step.name}.log"
        log.write_text("")  # a step that is tried again is told anew
        result = self.state / step.result
        result.unlink(missing_ok=True)
        began = self.machine.now()
        code = self.machine.run(step.command, self.state, log, limit, TICK_S,
                                self.save_beside_step)
        seconds = round(self.machine.now() - began)
        if code is None:
            self.tell(f"{step.name}: ended after {seconds} s: it took too long")
            ended_file.write_text(json.dumps([*ended, step.name]) + "\n")
            return OUT_OF_TIME
        finished = result.exists()
        last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        why = f": {last[-1]}" if last and code != 0 else ""
        self.tell(f"{step.name}: exit code {code} after {seconds} s{why}")
        outcome = {"code": code, "seconds": seconds, "kind": step.kind}
        return outcome if finished else FAILED


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
    parser.add_argument("--slice", choices=("all", *SLICES), default="all",
                        help="only the steps of this slice (all)")
    parser.add_argument("--cluster", help="a cluster of this card (by the card's name)")
    parser.add_argument("--budget", type=float, default=240, metavar="SECONDS",
                        help="of the calibration, for shapes around those of the scenarios (240)")
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
