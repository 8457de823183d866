#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the results of a GPU campaign beside each other, as a page in Markdown.

    scripts/gpu-campaign/summary.py OUT [-o OUT/summary.md]

Reads of the folder OUT, an unpacked campaign.tar.gz, what is there: profile.json, validate-*.json,
pytorch-steps*.json, pytorch.json, power.json, fits.json, done.json, tries.json, goals.json. A
figure that is not there is a dash.
"""

import argparse
import json
import pathlib
import statistics
import sys

CAMPAIGN = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
DASH = "–"
LEAST_RATIO = {"gemm": 0.98, "attention": 0.9}


def read(file):
    """An object, or {} where there is no such file; ends the program where it is not JSON."""
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        sys.exit(f"summary.py: {file}: {error}")


def has_times(file):
    """Whether a result of PyTorch has any."""
    found = read(file)
    return bool(found.get("kernels")) or any(
        at(entry, mode, "step_time_s") is not None for entry in found.get("scenarios", [])
        for mode in ("compiled", "eager"))


def at(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def ratio(over, under):
    return None if over is None or not under else over / under


def error(predicted, measured):
    """(predicted - measured)/measured."""
    return None if predicted is None or not measured else predicted / measured - 1


def shown(value, text="{}", scale=1):
    return DASH if value is None else text.format(value * scale)


def ms(value):
    return shown(value, "{:.2f}", 1e3)


def gib(value):
    return shown(value, "{:.2f}", 1 / GIB)


def percent(value):
    return shown(value, "{:+.1f} %", 100)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


class Case:
    """One scenario: what was forecast, what the executor and PyTorch measured."""

    def __init__(self, name, validation, steps, why_left_out):
        self.name, self.validation, self.steps = name, validation, steps
        self.why_left_out = why_left_out
        self.forecast = at(validation, "predicted", "step_time_s")
        self.executor = at(validation, "measured", "step_time_s")
        self.compiled = at(steps, "compiled", "step_time_s")
        self.eager = at(steps, "eager", "step_time_s")

    def part(self):
        ranks = at(self.validation, "alone", "of_ranks") or at(self.steps, "of_ranks")
        return shown(ranks, "1 of {}")

    def time_row(self):
        return [self.name, self.part(), ms(self.forecast), ms(self.executor), ms(self.compiled),
                ms(self.eager), percent(error(self.forecast, self.executor)),
                percent(error(self.forecast, self.compiled)),
                shown(ratio(self.compiled, self.executor), "{:.3f}"),
                shown(ratio(self.eager, self.executor), "{:.3f}")]

    def memory_row(self):
        predicted, measured = (at(self.validation, key) for key in ("predicted", "measured"))
        arena = [at(side, "peak_memory_bytes") for side in (predicted, measured)]
        device = [at(predicted, "peak_device_bytes"), at(measured, "device_used_bytes")]
        return [self.name, gib(arena[0]), gib(arena[1]), percent(error(*arena)), gib(device[0]),
                gib(device[1]), percent(error(*device)),
                *(gib(at(self.steps, "compiled", key))
                  for key in ("peak_memory_bytes", "device_used_bytes")),
                gib(at(self.steps, "eager", "peak_memory_bytes"))]

    def numerics_row(self):
        numerics = at(self.validation, "numerics")
        passed = at(self.validation, "passed")
        losses = at(self.steps, "compiled", "losses") or at(self.steps, "eager", "losses") or []
        return [self.name, shown(at(numerics, "loss_relative_error"), "{:.2e}"),
                shown(at(numerics, "loss_limit"), "{:.2e}"),
                shown(at(numerics, "parameter_relative_error"), "{:.2e}"),
                shown(at(numerics, "parameter_limit"), "{:.2e}"),
                DASH if passed is None else "yes" if passed else "no",
                f"{losses[0]:.3f} to {losses[-1]:.3f}" if losses else DASH]

    def remarks(self):
        """(what, text) that a reader of the figures has to know."""
        if self.why_left_out:
            yield "left out", self.why_left_out
        for one in at(self.validation, "broken") or []:
            yield one["what"], one["found"]
        if at(self.steps, "refused"):
            yield "PyTorch", self.steps["refused"]
        for mode in ("compiled", "eager"):
            if at(self.steps, mode, "error"):
                yield f"PyTorch, {mode}", self.steps[mode]["error"]
        for one in at(self.steps, "left_out") or []:
            yield "left out in PyTorch", one
        for one in at(self.validation, "alone", "left_out") or []:
            yield "left out in the executor", one["what"]


def steps_of(folder):
    """Joins what PyTorch measured, in one file for each scenario, into one."""
    out = {"scenarios": []}
    for file in sorted(folder.glob("pytorch-steps*.json")):
        found = read(file)
        out = {**found, "scenarios": out["scenarios"] + found.get("scenarios", [])}
    return out


def cases_of(folder, pytorch_steps):
    validations = {file.stem.removeprefix("validate-"): read(file)
                   for file in folder.glob("validate-*.json")}
    steps = {entry["scenario"]: entry for entry in pytorch_steps["scenarios"]}
    left_out = read(folder / "fits.json")
    shipped = {file.stem for file in CAMPAIGN.glob("*.json")}
    return [Case(name, validations.get(name, {}), steps.get(name, {}), left_out.get(name, ""))
            for name in sorted(shipped | set(validations) | set(steps) | set(left_out))]


def remarks_on_steps(folder):
    done = read(folder / "done.json")
    for name, one in done.items():
        if one["code"] != 0:
            yield f"- {name} ended with exit code {one['code']}: {name}.log says why"
        if one.get("profile", "own") != "own":
            yield f"- {name} has the profile {one['profile']}, which is shipped, for the card's own"
    for name, runs in read(folder / "tries.json").items():
        for number, run in enumerate(runs, 1):
            if run["end"] != "finished":
                why = f": {run['why']}" if run.get("why") else ""
                yield f"- {name}, run {number} of {len(runs)}: {run['end']}{why}"


def totals(cases):
    """Rows of figure, cases, mean, worst; errors are absolute."""
    def errors(what, pairs):
        found = [abs(one) for one in (error(*pair) for pair in pairs) if one is not None]
        middle = statistics.mean(found) if found else None
        return [what, str(len(found)), shown(middle, "{:.1f} %", 100),
                shown(max(found, default=None), "{:.1f} %", 100)]

    def memory(predicted, measured):
        return [(at(case.validation, "predicted", predicted),
                 at(case.validation, "measured", measured)) for case in cases]

    ratios = [one for one in (ratio(case.compiled, case.executor) for case in cases)
              if one is not None]
    return [
        errors("forecast against executor", [(c.forecast, c.executor) for c in cases]),
        errors("forecast against PyTorch compiled", [(c.forecast, c.compiled) for c in cases]),
        errors("memory of tensors", memory("peak_memory_bytes", "peak_memory_bytes")),
        errors("memory by the driver", memory("peak_device_bytes", "device_used_bytes")),
        ["PyTorch compiled over executor", str(len(ratios)),
         shown(statistics.mean(ratios) if ratios else None, "{:.3f}"),
         shown(min(ratios, default=None), "{:.3f}")],
    ]


def kernel_rows(pytorch):
    for kind, least in LEAST_RATIO.items():
        ratios = sorted(row["ratio"] for row in pytorch.get("kernels", []) if row["kind"] == kind)
        if not ratios:
            yield [kind, DASH, DASH, DASH, DASH]
            continue
        reached = sum(one >= least for one in ratios)
        yield [kind, str(len(ratios)), f"{statistics.median(ratios):.3f}", f"{ratios[0]:.3f}",
               f"{reached} of {len(ratios)} (from {least})"]


def power_rows(power):
    """Kernels in the order in which they were measured, those that failed with their reason."""
    for name, found in (power.get("measured") or {}).items():
        if "error" in found:
            yield [name, DASH, DASH, DASH, DASH, found["error"]]
            continue
        burst, call = found.get("burst_s"), found.get("call_s")
        yield [name, ms(burst), ms(call), shown(ratio(call, burst), "{:.2f}"),
               shown(found.get("power_w"), "{:.0f} W"),
               shown(found.get("sm_clock_mhz"), "{:.0f} MHz")]


def power_part(folder):
    power = read(folder / "power.json")
    rows = list(power_rows(power))
    if not rows:
        return DASH
    ended = [f"- {name} has ended its process: nothing is known of it"
             for name in power.get("ended", {}) if name not in power["measured"]]
    return "\n\n".join([
        "Times of a call in ms, of PyTorch's kernels: in the first 8 ms after a rest, with the "
        "clock at its highest, and without rest at the power limit.",
        table(["kernel", "after a rest", "without rest", "ratio", "power", "SM clock"], rows),
        *ended])


def machine_line(folder, pytorch, steps):
    profile = read(folder / "profile.json")
    facts = [at(steps, "device") or at(pytorch, "device") or at(profile, "machine", "device")]
    version = at(steps, "torch") or at(pytorch, "torch")
    facts.append(None if version is None else f"PyTorch {version}")
    facts += [f"{key} {value}" for key, value in (at(profile, "machine") or {}).items()
              if key != "device"]
    known = [str(fact) for fact in facts if fact is not None]
    return ", ".join(known) or DASH


def page(folder):
    pytorch, steps = read(folder / "pytorch.json"), steps_of(folder)
    cases = cases_of(folder, steps)
    streams = pytorch.get("streams", {})
    published = at(pytorch, "profile", "own") is False
    bandwidths = [shown(streams.get(key), "{:.3f}", 1e-12)
                  for key in ("copy_bytes_per_s", "adamw_bytes_per_s")]
    remarks = [*remarks_on_steps(folder), *(f"- {case.name}, {what}: {text}" for case in cases
                                        for what, text in case.remarks())]
    goals = [f"- {words}" for words in read(folder / "goals.json").values()]
    return "\n\n".join([
        "# Results of the GPU campaign", machine_line(folder, pytorch, steps),
        "\n".join(goals) or DASH,
        "## Step time", "Times in ms; a ratio above 1 means that the executor is the faster one.",
        table(["scenario", "ranks", "forecast", "executor", "PyTorch compiled", "PyTorch eager",
               "forecast/executor", "forecast/compiled", "compiled : executor",
               "eager : executor"], [case.time_row() for case in cases]),
        "## All cases", table(["figure", "cases", "mean", "worst"], totals(cases)),
        "## Memory", "In GiB: living tensors at their peak, and what the driver counts, with "
        "context and libraries.",
        table(["scenario", "forecast", "executor", "error", "forecast by the driver",
               "executor by the driver", "error", "PyTorch compiled", "the same by the driver",
               "PyTorch eager"],
              [case.memory_row() for case in cases]),
        "## Numerics", "Relative errors of losses and parameters, with their limits. PyTorch's "
        "losses are of other weights and texts.",
        table(["scenario", "loss", "limit", "parameters", "limit", "passed", "PyTorch's losses"],
              [case.numerics_row() for case in cases]),
        "## Kernels", "PyTorch's time over that of the shipped profile, which the program has not "
        "measured, by shape." if published else "PyTorch's time over the program's, by shape.",
        table(["kernel", "shapes", "median", "least", "reached"], kernel_rows(pytorch)),
        f"In PyTorch a copy reaches {bandwidths[0]} TB/s, fused AdamW {bandwidths[1]} TB/s.",
        "## Power", power_part(folder),
        "## Remarks", "\n".join(remarks) or DASH]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="OUT")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    if not options.folder.is_dir():
        sys.exit(f"summary.py: {options.folder}: no such folder")
    text = page(options.folder)
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
