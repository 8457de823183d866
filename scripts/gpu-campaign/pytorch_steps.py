#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times in PyTorch, on one GPU, the steps of rank 0 of each scenario: eager and compiled.

    scripts/gpu-campaign/pytorch_steps.py SCENARIO... --stepcast BINARY -o OUT.json
                                          [--data FOLDER] [--seconds 4]

bf16 with fp32 master weights, attention by scaled_dot_product_attention, fused AdamW, gradients
clipped at norm 1. Each mode is timed with attention by cuDNN and by flash attention, and the faster
of the two counts. Of a layout of several ranks the share of rank 0 runs alone; what that leaves out
stands in the result. A scenario or mode that fails is reported there, and the others go on. What
OUT already has of the same scenario, PyTorch and GPU is kept.

Memory is counted as the executor counts its own: peak_memory_bytes is what tensors took at most,
device_used_bytes what the device lacked at the end, with context, libraries and allocator.
"""

import argparse
import gc
import json
import math
import pathlib
import statistics
import subprocess
import sys

import attention_backends
import pytorch_decoder
import rank_share

MODES = ("eager", "compiled")
WARM_UP = 2
FEWEST, MOST = 4, 100
CLOCKS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")


def quantile(ordered, share):
    """A quantile of sorted values, linear between neighbours."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def spread(times):
    ordered = sorted(times)
    return {"step_time_s": statistics.median(ordered), "step_time_p10_s": quantile(ordered, 0.1),
            "step_time_p90_s": quantile(ordered, 0.9), "n": len(ordered)}


def clocks():
    """The state of the first GPU; None where nvidia-smi does not say."""
    command = ["nvidia-smi", f"--query-gpu={','.join(CLOCKS)}", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    values = [value.strip() for value in done.stdout.strip().split(",")]
    if done.returncode != 0 or len(values) != len(CLOCKS):
        return None
    return dict(zip(CLOCKS, values))


def time_steps(torch, share, compiled, seconds):
    rank = pytorch_decoder.Rank(torch, share, compiled)
    update = pytorch_decoder.Update(torch, rank.parameters(), share)
    losses = []

    def step():
        found = [rank.micro_batch() for _ in range(share.micro_batches)]
        update.step()
        if share.last:
            losses.append(torch.stack(found).mean())

    def timed():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        return start, end

    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start, end = timed()
    end.synchronize()
    once = max(1e-6, start.elapsed_time(end) / 1e3)
    pairs = [timed() for _ in range(max(FEWEST, min(MOST, round(seconds / once))))]
    at_work = clocks()  # the last steps are still under way
    torch.cuda.synchronize()
    out = spread([start.elapsed_time(end) / 1e3 for start, end in pairs])
    out["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
    free, total = torch.cuda.mem_get_info()
    out["device_used_bytes"] = total - free
    out["losses"] = [loss.item() for loss in losses]
    out["clocks"] = at_work
    return out


def first_line(error):
    return f"{type(error).__name__}: " + (str(error).strip().splitlines() or [""])[0]


def time_mode(torch, share, compiled, seconds, backend):
    try:
        with attention_backends.only(torch, backend):
            out = time_steps(torch, share, compiled, seconds)
    except Exception as error:  # out of memory and whatever a compiler may raise
        out = {"error": first_line(error)}
    gc.collect()
    torch.cuda.empty_cache()
    if hasattr(torch, "_dynamo"):
        torch._dynamo.reset()  # what is compiled has its backend inside
    return out


def measure_modes(torch, share, seconds):
    """By mode what was measured with the faster attention, or {"error"}; and all there is."""
    found = {mode: {backend: time_mode(torch, share, mode == "compiled", seconds, backend)
                    for backend in attention_backends.NAMES} for mode in MODES}
    out = {}
    for mode, by_backend in found.items():
        best = min(by_backend, key=lambda name: by_backend[name].get("step_time_s", math.inf))
        out[mode] = {"attention": best, **by_backend[best]}
    return {**out, "by_attention": found}


def measure(torch, scenario, options, known):
    """One scenario's entry of the result: of `known` where the same was measured already."""
    out = {"scenario": scenario.stem}
    try:
        predicted = rank_share.forecast(options.stepcast, options.data, scenario)
        share = rank_share.share_of(predicted["resolved"])
    except rank_share.Refused as refusal:
        return {**out, "refused": str(refusal)}
    resolved = {key: predicted["resolved"][key] for key in ("model", "training", "layout")}
    for entry in known:
        if entry.get("resolved") == resolved and entry["scenario"] == scenario.stem:
            return entry
    return {**out, "resolved": resolved, "layers": share.layers, "parameters": share.parameters(),
            "tokens_per_step": share.micro_batches * share.batch * share.sequence,
            "of_ranks": resolved["layout"]["tp"] * resolved["layout"]["pp"] *
            resolved["layout"]["dp"],
            "left_out": rank_share.left_out(resolved),
            **measure_modes(torch, share, options.seconds)}


def measured_before(output, result):
    """Entries of an earlier call on the same card without errors."""
    try:
        before = json.loads(output.read_text())
    except (OSError, ValueError):
        return []
    if any(before.get(key) != result[key] for key in ("torch", "device")):
        return []
    return [entry for entry in before.get("scenarios", [])
            if all("step_time_s" in entry.get(mode, {}) for mode in MODES)]


def write(output, result):
    waiting = output.with_name(output.name + ".part")
    waiting.write_text(json.dumps(result, indent=1) + "\n")
    waiting.replace(output)


def line_of(entry):
    if "refused" in entry:
        return f"{entry['scenario']}: {entry['refused']}"
    parts = []
    for mode in MODES:
        found = entry[mode]
        parts.append(f"{mode} " + (found["error"] if "error" in found else
                                   f"{found['step_time_s'] * 1e3:.2f} ms "
                                   f"({found['n']} steps, attention by {found['attention']})"))
    return f"{entry['scenario']}: " + ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", type=pathlib.Path, nargs="+", metavar="SCENARIO")
    parser.add_argument("--stepcast", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--data", type=pathlib.Path, help="folder of models and clusters")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=4,
                        help="of steps, for each mode and attention")
    options = parser.parse_args()
    for file in (options.stepcast, *options.scenarios):
        if not file.is_file():
            sys.exit(f"pytorch_steps.py: {file}: No such file")
    try:
        import torch
    except ImportError:
        sys.exit("pytorch_steps.py: PyTorch is not installed here")
    if not torch.cuda.is_available():
        sys.exit("pytorch_steps.py: PyTorch sees no GPU")
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(),
              "compiled": "torch.compile of a block and of the loss; the optimizer is fused in "
                          "both modes", "scenarios": []}
    known = measured_before(options.output, result)
    for scenario in options.scenarios:
        entry = measure(torch, scenario, options, known)
        result["scenarios"].append(entry)
        print(line_of(entry), flush=True)
        # Each time, with what is known of those to come: a call may be ended early.
        rest = {one.stem for one in options.scenarios[len(result["scenarios"]):]}
        later = [one for one in known if one["scenario"] in rest]
        write(options.output, {**result, "scenarios": result["scenarios"] + later})


if __name__ == "__main__":
    main()
