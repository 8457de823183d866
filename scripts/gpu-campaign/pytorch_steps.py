#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times in PyTorch, on one GPU, the steps of rank 0 of each scenario: eager and compiled.

    scripts/gpu-campaign/pytorch_steps.py SCENARIO... --stepcast BINARY -o OUT.json
                                          [--data FOLDER] [--seconds 4]

bf16 with fp32 master weights, attention by scaled_dot_product_attention, fused AdamW, gradients
clipped at norm 1. Each mode is timed with attention by cuDNN and by flash attention, and the faster
of the two counts. Of a layout of several ranks the share of rank 0 runs alone; what that leaves out
stands in the result. A scenario or mode that fails is reported there, and the others go on. OUT is
written after each mode, and what it already has of the same scenario, PyTorch and GPU is kept.

Memory is counted as the executor counts its own: peak_memory_bytes is what tensors took at most,
device_used_bytes what the device lacked at the end, with context, libraries and allocator.
"""

import argparse
import gc
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys

import attention_backends
import pytorch_decoder
import rank_share
from growing_result import GpuBroken, GrowingResult

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


def time_mode(torch, share, compiled, seconds, backend):
    try:
        with attention_backends.only(torch, backend):
            return time_steps(torch, share, compiled, seconds)
    finally:
        gc.collect()
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()  # what is compiled has its backend inside


def faster_of_each_mode(by_mode):
    """By mode what was measured with the faster attention, or {"error"}; and all there is."""
    out = {}
    for mode, by_backend in by_mode.items():
        if by_backend:
            best = min(by_backend, key=lambda name: by_backend[name].get("step_time_s", math.inf))
            out[mode] = {"attention": best, **by_backend[best]}
    return {**out, "by_attention": by_mode}


class Scenario:
    """Holds what is measured of one scenario."""

    def __init__(self, file, options):
        self.entry = {"scenario": file.stem}
        self.share = None  # where it is refused
        try:
            resolved = rank_share.forecast(options.stepcast, options.data, file)["resolved"]
            self.share = share = rank_share.share_of(resolved)
        except rank_share.Refused as refusal:
            self.entry["refused"] = str(refusal)
            return
        kept = {key: resolved[key] for key in ("model", "training", "layout")}
        self.digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]
        layout = kept["layout"]
        self.entry.update({
            "resolved": kept, "layers": share.layers, "parameters": share.parameters(),
            "tokens_per_step": share.micro_batches * share.batch * share.sequence,
            "of_ranks": layout["tp"] * layout["pp"] * layout["dp"],
            "left_out": rank_share.left_out(resolved)})

    def key(self, mode, backend):
        return f"{self.entry['scenario']} {mode} {backend} {self.digest}"

    def measure(self, torch, result, seconds):
        """Measures what `result` lacks; what failed before is tried again."""
        if self.share is None:
            return
        keys = {self.key(mode, backend): (mode, backend)
                for mode in MODES for backend in attention_backends.NAMES}
        for key in keys:
            if "error" in result.measured.get(key, {}):
                del result.measured[key]
        for key in result.in_order(keys):
            mode, backend = keys[key]
            result.measure(torch, key, lambda: time_mode(torch, self.share, mode == "compiled",
                                                         seconds, backend))

    def told(self, result):
        """The entry, with what is measured by now."""
        if self.share is None:
            return self.entry
        by_mode = {mode: {} for mode in MODES}
        for mode in MODES:
            for backend in attention_backends.NAMES:
                key = self.key(mode, backend)
                if key in result.measured:
                    by_mode[mode][backend] = result.measured[key]
                elif key in result.ended:
                    by_mode[mode][backend] = {"error": "ended its process, or was ended with it"}
        return {**self.entry, **faster_of_each_mode(by_mode)}


def line_of(entry):
    if "refused" in entry:
        return f"{entry['scenario']}: {entry['refused']}"
    parts = []
    for mode in MODES:
        found = entry.get(mode, {"error": "not measured"})
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
    result = GrowingResult(options.output, {"torch": torch.__version__,
                                            "device": torch.cuda.get_device_name()})
    scenarios = [Scenario(file, options) for file in options.scenarios]
    result.rest_of = lambda: {
        "compiled": "torch.compile of a block and of the loss; the optimizer is fused in both "
                    "modes",
        "scenarios": [one.told(result) for one in scenarios]}
    for scenario in scenarios:
        try:
            scenario.measure(torch, result, options.seconds)
        except GpuBroken as reason:
            sys.exit(f"pytorch_steps.py: {reason}")
        print(line_of(scenario.told(result)), flush=True)
    result.write()


if __name__ == "__main__":
    main()
