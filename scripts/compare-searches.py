#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches the same spaces with two builds, and compares their answers and their processor time.

    scripts/compare-searches.py OLD/build/release/stepcast NEW/build/release/stepcast [--only WORD]

The answers are the places (layout, step time, memory, equal layouts), the front and what is proven.
An answer that differs is printed with both of its values, and the exit code is then 1. A place that
one build has proven and the other has not is named apart, and so is a layout that does not fit and
that only the old one names: it would be slower than the last place.
"""

import argparse
import json
import resource
import subprocess
import sys

# Dense models and experts, one node and thousands, pipelines and sharded states, memory that binds,
# adapters, long sequences, quantiles, fronts and offers.
SEARCHES = [
    "gpt3-175b dgx-a100-80gx64 1536 2048 --prove --top 1",
    "gpt3-175b dgx-a100-80gx64 1536 2048 --top 10",
    "gpt3-175b dgx-a100-80gx16 256 2048 --prove --top 3",
    "gpt3-175b dgx-h100x128 2048 2048 --top 5",
    "llama-3.1-405b dgx-h100x2048 2048 8192 --prove --top 1",
    "llama-3.1-405b dgx-h100x64 512 8192 --top 5",
    "llama-3.1-405b dgx-h100x16 128 4096 --prove --top 3",
    "llama-3.1-70b dgx-h100x8 512 8192 --prove --top 1",
    "llama-3.1-70b dgx-h100x8 512 4096 --top 10",
    "llama-3.1-70b dgx-a100-80gx8 256 4096 --top 5",
    "llama-3.1-8b dgx-h100x1 64 8192 --prove --top 10",
    "llama-3.1-8b dgx-h100x8 256 4096 --top 10",
    "llama-3.1-8b dgx-h100x2 64 16384 --top 3 --tp 2",
    "llama-3.1-8b dgx-a100-40gx1 32 4096 --top 5",
    "llama-2-7b dgx-a100-80gx1 64 4096 --recompute none --top 3 --prove",
    "llama-2-70b dgx-a100-40gx1 8 2048",
    "llama-2-13b dgx-a100-80gx2 128 4096 --framework fsdp --top 5",
    "llama-2-13b dgx-a100-80gx2 128 4096 --framework deepspeed --top 5",
    "gpt3-1.3b dgx-a100-80gx1 16 1024 --prove --top 40",
    "gpt3-1.3b dgx-a100-80gx1 32 1024 --front 4 --top 3",
    "gpt3-6.7b dgx-a100-40gx1 8 2048 --prove --top 5",
    "gpt3-6.7b dgx-h100x4 128 2048 --front 3",
    "gpt3-13b dgx-a100-80gx4 128 2048 --risk 0.9 --top 5",
    "qwen3-30b-a3b dgx-h100x2 256 4096 --top 5",
    "qwen3-30b-a3b dgx-h100x8 512 4096 --top 1 --prove --recompute none",
    "mixtral-8x7b dgx-h100x4 256 4096 --top 3",
    "llama-3.2-1b pcie-4090-8x1 32 1024 --prove --top 5",
    "qwen2.5-3b dgx-h100x1 64 4096 --set training.mode=lora --top 5",
    "gpt2 dgx-a100-80gx1 16 512 --framework native --prove --top 20",
    "llama-3.1-8b --clusters=dgx-h100,dgx-a100-80g 256 4096 --gpus 8..32",
]


def command_of(search):
    model, cluster, batch, tokens, *rest = search.split()
    where = cluster.split("=") if "=" in cluster else ["--cluster", cluster]
    return ["plan", "--model", model, *where, "--global-batch", batch, "--seq", tokens, *rest,
            "--threads", "1", "--format", "json"]


def answer_of(program, search):
    """Runs it: the answer, and the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *command_of(search)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 3):
        raise SystemExit(f"{program}: {search}: {done.stderr}")
    return json.loads(done.stdout), seconds


def parts_of(answer):
    """The parts that two builds must agree in, by name."""
    def layout(entry):
        return json.dumps(entry["layout"], sort_keys=True)

    out = {}
    for plan in answer["plans"]:
        prediction = plan["prediction"]
        name = f"place {plan['place']}"
        out[name] = (layout(plan), prediction["step_time_s"], prediction["peak_device_bytes"])
        out[name + ", equal layouts"] = plan.get("equal_layouts")
    for i, point in enumerate(answer["pareto"]):
        out[f"point {i}"] = (layout(point), point["step_time_s"], point["peak_device_bytes"])
    large = [entry for entry in answer["rejected"] if entry.get("bound") == "memory"]
    for i, entry in enumerate(large[:3]):
        out[f"does not fit {i}"] = (layout(entry), entry["value"])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="", help="searches that have this word")
    arguments = parser.parse_args()
    differs = False
    print(f"{'old':>8s} {'new':>8s}  search")
    for search in (one for one in SEARCHES if arguments.only in one):
        old, old_s = answer_of(arguments.old, search)
        new, new_s = answer_of(arguments.new, search)
        print(f"{old_s:7.2f}s {new_s:7.2f}s  {search}", flush=True)
        if old["proven"] != new["proven"]:
            print(f"{'':19s}proven: {old['proven']}, now {new['proven']}")
        before, now = parts_of(old), parts_of(new)
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) == now.get(name):
                continue
            differs = differs or not (name.startswith("does not fit") and name not in now)
            print(f"{'':19s}{name}: {before.get(name)}\n{'':19s}  now {now.get(name)}")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
