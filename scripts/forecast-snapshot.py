#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down what the program forecasts, so that a change can show that it alters no forecast.

A snapshot is a folder of JSON files: `check` of the shipped suites, `predict` of 40 scenarios that
vary model, cluster and layout, and `plan` of 6. Two programs forecast alike when `diff -r` of their
snapshots is empty.

    scripts/forecast-snapshot.py --stepcast build/release/stepcast OUT        write a snapshot
    scripts/forecast-snapshot.py --stepcast build/release/stepcast OUT --against BEFORE
                                                  and compare it; exits 1 where a file differs
    --only predict,plan,check                     some of the three
"""
import argparse
import filecmp
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# One line a scenario: model, cluster, then flags of `predict`.
PREDICTIONS = """
gpt3-175b dgx-a100-80gx64 --global-batch 1536 --seq 2048 --tp 8 --pp 8
gpt3-175b dgx-a100-80gx64 --global-batch 1536 --seq 2048 --tp 8 --pp 16 --vpp 3 \
  --schedule interleaved
gpt3-175b dgx-a100-80gx16 --global-batch 512 --seq 2048 --tp 8 --pp 8 --recompute full
gpt3-175b dgx-a100-80gx8 --global-batch 128 --seq 2048 --tp 16 --pp 4
gpt3-175b dgx-h100x64 --global-batch 1536 --seq 2048 --tp 4 --pp 16 --recompute selective
gpt3-175b dgx-a100-80gx64 --global-batch 1536 --seq 2048 --tp 8 --pp 8 \
  --set layout.overlap.grad_reduce=true
gpt3-175b dgx-a100-80gx8 --global-batch 64 --seq 2048 --tp 8 --pp 8 --schedule gpipe
llama-3.1-8b dgx-h100x1 --global-batch 32 --seq 8192
llama-3.1-8b dgx-h100x2 --global-batch 128 --seq 8192 --tp 2
llama-3.1-8b dgx-h100x2 --global-batch 128 --seq 8192 --zero 3
llama-3.1-8b dgx-h100x2 --global-batch 128 --seq 8192 --zero 2 --set training.framework=fsdp
llama-3.1-8b dgx-h100x2 --global-batch 128 --seq 8192 --zero 3 --set training.no_sync=true
llama-3.1-8b dgx-h100x4 --global-batch 128 --seq 4096 --tp 4 --pp 2
llama-3.1-8b dgx-h100x4 --global-batch 128 --seq 4096 --tp 4 --pp 2 \
  --set layout.sequence_parallel=false
llama-3.1-8b dgx-a100-80gx4 --global-batch 64 --seq 4096 --tp 8 --set layout.overlap.tp=true
llama-3.1-8b dgx-a100-80gx2 --global-batch 64 --seq 2048 --set training.framework=deepspeed \
  --zero 1
llama-3.1-8b dgx-a100-80gx2 --global-batch 64 --seq 2048 --set training.framework=deepspeed \
  --zero 2
llama-3.1-8b dgx-a100-80gx2 --global-batch 64 --seq 2048 --set training.framework=deepspeed \
  --zero 3
llama-3.1-8b dgx-a100-80gx2 --global-batch 64 --seq 2048 --set training.framework=native \
  --zero 0 --tp 2
llama-3.1-8b a100-pcie-8x2 --global-batch 64 --seq 2048 --tp 2 --pp 2
llama-3.1-8b pcie-4090-8x1 --global-batch 16 --seq 1024 --tp 2 --pp 4 --recompute full
llama-3.1-8b dgx-h100x1 --global-batch 32 --seq 4096 --set training.mode=lora \
  --set training.lora_rank=16
llama-3.1-8b dgx-h100x1 --global-batch 32 --seq 4096 --set training.mode=qlora \
  --set training.lora_rank=16
llama-3.1-70b dgx-h100x8 --global-batch 512 --seq 8192 --tp 8 --pp 4
llama-3.1-70b dgx-h100x8 --global-batch 512 --seq 8192 --tp 8 --pp 4 --vpp 5 \
  --schedule interleaved
llama-3.1-70b dgx-h100x8 --global-batch 128 --seq 8192 --zero 3 --recompute full
llama-3.1-70b dgx-h100x8 --global-batch 64 --seq 8192 --tp 16 --pp 4
llama-3.1-70b dgx-b200x4 --global-batch 128 --seq 8192 --tp 4 --pp 4
llama-3.1-70b gb200-nvl72x18 --global-batch 144 --seq 8192 --tp 4 --pp 2
llama-3.1-70b dgx-h200x4 --global-batch 128 --seq 8192 --tp 4 --pp 4 \
  --set layout.overlap.param_gather=true --set layout.overlap.grad_reduce=true
llama-3.1-405b dgx-h100x64 --global-batch 256 --seq 8192 --tp 8 --pp 16
llama-3.1-405b dgx-h100x2048 --global-batch 2048 --seq 8192 --tp 8 --pp 16
llama-2-7b dgx-a100-80gx1 --global-batch 64 --seq 4096 --recompute selective
llama-2-13b dgx-a100-40gx4 --global-batch 128 --seq 4096 --tp 2 --pp 4 --micro-batch 2
llama-2-13b aws-p4dx4 --global-batch 128 --seq 4096 --zero 3
gpt2-xl dgx-a100-80gx1 --global-batch 64 --seq 1024
gpt2-xl dgx-a100-80gx2 --global-batch 64 --seq 1024 --pp 2 --set training.attention=unfused
gemma-2-9b dgx-h100x1 --global-batch 32 --seq 4096 --tp 2
qwen2.5-7b gh200-alpsx4 --global-batch 64 --seq 4096 --tp 4
falcon-7b dgx-h100x1 --global-batch 64 --seq 2048 --pp 2 --unfolded
""".strip().splitlines()

# Plans are asked for likewise, with flags of `plan`.
PLANS = """
llama-3.1-8b dgx-h100x1 --global-batch 64 --seq 8192 --top 5
llama-3.1-8b dgx-a100-80gx2 --global-batch 128 --seq 4096 --prove --top 3
llama-2-13b dgx-a100-80gx4 --global-batch 128 --seq 4096 --prove --top 3
llama-3.1-70b dgx-h100x8 --global-batch 256 --seq 8192 --top 3
gpt2-xl pcie-4090-8x1 --global-batch 64 --seq 1024 --top 5
llama-2-13b dgx-h100x1 --global-batch 128 --advise
""".strip().splitlines()


def command(stepcast, verb, line):
    model, cluster, *flags = line.split()
    return [stepcast, verb, "--model", model, "--cluster", cluster, *flags, "--format", "json"]


def runs(stepcast, only):
    """Name of a file, and the command whose output it holds."""
    if "check" in only:
        yield "check.json", [stepcast, "check", "all", "--format", "json", "--quiet"]
    for verb, lines in (("predict", PREDICTIONS), ("plan", PLANS)):
        if verb in only:
            for number, line in enumerate(lines, 1):
                yield f"{verb}-{number:02}.json", command(stepcast, verb, line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=pathlib.Path, help="folder to write")
    parser.add_argument("--stepcast", default=str(ROOT / "build/release/stepcast"))
    parser.add_argument("--against", type=pathlib.Path, help="an earlier snapshot to compare with")
    parser.add_argument("--only", default="check,predict,plan")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    differ = 0
    for name, words in runs(arguments.stepcast, arguments.only.split(",")):
        done = subprocess.run(words, capture_output=True, text=True)
        text = done.stdout if done.stdout else f"exit {done.returncode}\n{done.stderr}"
        (arguments.out / name).write_text(text)
        if arguments.against is None:
            continue
        before = arguments.against / name
        if not before.exists() or not filecmp.cmp(before, arguments.out / name, shallow=False):
            differ += 1
            print(f"{name} differs: {' '.join(words[1:])}")
    if arguments.against is not None:
        print(f"{differ} files differ from {arguments.against}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
