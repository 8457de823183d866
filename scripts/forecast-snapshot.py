#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down what the program forecasts, so that a change can show that it alters no forecast.

A snapshot is a folder of JSON files: `check` of the shipped suites, `predict` of 40 scenarios that
vary model, cluster and layout, and `plan` of 6. Two programs forecast alike when `diff -r` of their
snapshots is empty. With --every-format it also has each of their other formats, pages, a trace
and a timeline of memory, what `show` says, `plan` over clusters, and `compare`.

    scripts/forecast-snapshot.py --stepcast build/release/stepcast OUT        write a snapshot
    scripts/forecast-snapshot.py --stepcast build/release/stepcast OUT --against BEFORE
                                                  and compare it; exits 1 where a file differs
    --only predict,plan,check,compare             some of the four
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

# Searches that have a format of their own.
MORE_PLANS = """
llama-2-13b dgx-a100-80gx4 --global-batch 128 --seq 4096 --front 5 --why-not tp=8 --tokens 1T \
  --objective cost
llama-2-13b dgx-h100x1 --global-batch 128 --advise --tokens 2B --deadline 30d
llama-3.1-8b - --global-batch 256 --clusters dgx-h100,dgx-a100-80g,pcie-4090-8 \
  --gpus 8,16 --tokens 100B --top 4
""".strip().replace("\\\n", "").splitlines()

COMPARISONS = """
llama-3.1-8b dgx-h100x2 --global-batch 128 --vary layout.tp=1,2,4,16
llama-3.1-8b dgx-h100x4 --global-batch 128 --vary cluster.nodes=2,4,8 --scaling weak
llama-2-13b dgx-a100-80gx4 --global-batch 128 --seq 4096 --tp 4 --tornado 20
llama-2-13b dgx-a100-80gx4 --global-batch 128 --seq 4096 --vary layout.tp=4,8 --what-if nic=+50%
gpt2-xl dgx-a100-80gx2 --global-batch 64 --seq 1024 --vary layout.zero=0,1 \
  --vary layout.micro_batch=1,2,3
""".strip().replace("\\\n", "").splitlines()

# A verb prints these beside JSON, and writes these files on the way.
FORMATS = {"predict": ["table", "csv", "md"], "plan": ["table", "csv", "md"],
           "compare": ["table", "csv", "md"], "check": ["table", "csv", "md", "junit", "github"]}
FILES = {"predict": ["--html"], "plan": ["--html"],
         "compare": ["--html"], "check": ["--html"]}
WORDS = ["show keys", "show schedules", "show models", "show clusters", "show gpus"]


def command(stepcast, verb, line):
    model, cluster, *flags = line.split()
    where = ["--cluster", cluster] if cluster != "-" else []
    return [stepcast, verb, "--model", model, *where, *flags, "--format", "json"]


def files_of(words):
    """The flags by which this command writes files: an advice has no page."""
    return FILES[words[1]] if "--advise" not in words and "--unfolded" not in words else []


def commands(stepcast, only, every):
    """Name of a file without its ending, and the command that prints it as JSON."""
    if "check" in only:
        yield "check", [stepcast, "check", "all", "--format", "json", "--quiet"]
    plans = PLANS + (MORE_PLANS if every else [])
    for verb, lines in (("predict", PREDICTIONS), ("plan", plans), ("compare", COMPARISONS)):
        if verb in only:
            for number, line in enumerate(lines, 1):
                yield f"{verb}-{number:02}", command(stepcast, verb, line)


def runs(stepcast, only, every, out):
    """Name of a file, and the command whose output it holds."""
    for name, words in commands(stepcast, only, every):
        more = files_of(words) if every else []
        yield f"{name}.json", words + [word for flag in more
                                       for word in (flag, str(out / (name + flag.strip("-"))))]
        for form in FORMATS[words[1]] if every else []:
            yield f"{name}.{form}", [form if word == "json" else word for word in words]
    if every and "predict" in only:
        line = PREDICTIONS[9]
        yield "require.txt", command(stepcast, "predict", line) + ["--require", "mfu>=0.9"]
        yield "explain.txt", command(stepcast, "predict", line)[:-2] + ["--explain"]
        yield "files.txt", command(stepcast, "predict", line) + [
            "--trace", str(out / "trace.json"), "--memory-timeline", str(out / "memory.json")]
        for words in WORDS:
            yield f"{words.replace(' ', '-')}.txt", [stepcast, *words.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=pathlib.Path, help="folder to write")
    parser.add_argument("--stepcast", default=str(ROOT / "build/release/stepcast"))
    parser.add_argument("--against", type=pathlib.Path, help="an earlier snapshot to compare with")
    parser.add_argument("--only", default="check,predict,plan")
    parser.add_argument("--every-format", action="store_true", help="and every command")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    differ = 0
    every = arguments.every_format
    only = arguments.only.split(",") + (["compare"] if every else [])
    for name, words in runs(arguments.stepcast, only, every, arguments.out):
        done = subprocess.run(words, capture_output=True, text=True)
        text = done.stdout if done.stdout else f"exit {done.returncode}\n{done.stderr}"
        (arguments.out / name).write_text(text)
    written = sorted(file.name for file in arguments.out.iterdir())
    for name in written if arguments.against is not None else []:
        before = arguments.against / name
        if not before.exists() or not filecmp.cmp(before, arguments.out / name, shallow=False):
            differ += 1
            print(f"{name} differs")
    if arguments.against is not None:
        print(f"{differ} of {len(written)} files differ from {arguments.against}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
