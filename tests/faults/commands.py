# SPDX-License-Identifier: Apache-2.0
"""The commands that the sweep fails at every point, and what they read.

`words` are those of the command line, relative to a folder of its own: `in` holds what is read,
`out` what is written. Files of `out` are there before, with the content that `old` gives them (none
at all for None) or else with OLD, so that a command which fails can be asked whether they are still
intact. `least` are calls that the command makes at the least: a sweep of fewer would test nothing.
"""
import dataclasses
import json
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[2]
OLD = "what was there before\n"

LOCAL_MODEL = {
    "layers": 2, "hidden": 32, "heads": 4, "vocab": 64, "max_positions": 16, "mlp": "gelu",
    "norm": "layernorm", "position": "learned", "biases": True, "vocab_multiple": 1,
    "tied_embeddings": True, "dropout": 0}
LOCAL = {
    "stepcast": 1, "model": LOCAL_MODEL, "cluster": {"base": "local", "gpus": 2},
    "training": {"global_batch": 8, "sequence_length": 16, "precision": "fp32",
                 "attention": "flash", "framework": "native"},
    "layout": {"dp": 2, "micro_batch": 1, "zero": 0}}
SCENARIO = {
    "stepcast": 1, "model": "llama-3.1-8b", "cluster": {"base": "dgx-h100", "nodes": 2},
    "training": {"global_batch": 64, "sequence_length": 4096, "framework": "megatron"},
    "layout": {"tp": 2, "pp": 4, "micro_batch": 1}}
SUITE = {
    "stepcast_suite": 1, "name": "made",
    "cases": [{"id": "one", "source": "made for a test", "tags": ["small"], "scenario": SCENARIO,
               "measured": {"step_time_s": 2.0}}]}
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 1024, "vocab_size": 1000, "max_position_embeddings": 512}
BASELINE = {"stepcast_baseline": 1, "summary": {"made": {}}, "cases": {}}
TABLE = "all_reduce_h100x16_a3_mega.txt"
MEGATRON = """#!/bin/bash
GPUS_PER_NODE=8
NNODES=4
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \\
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \\
  --max-position-embeddings 2048 --vocab-size 50257 --micro-batch-size 2 --global-batch-size 256 \\
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --bf16
"""

# Longer than one read of a file, and than several lines of a reader.
LOG = "".join(
    f" [2025-04-13 23:41:57] iteration {step}/    2000 | consumed samples:          960 | elapsed "
    "time per iteration (ms): 837.6 | throughput per GPU (TFLOP/s/GPU): 231.9 | learning rate: "
    "9.980959E-05 | global batch size:    16 | lm loss: 8.638345E+00 | loss scale: 4096.0 | grad "
    "norm: 2.221 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    for step in range(1, 401))
GOAL = "num_ranks 1\nrank 0 {\n" + "".join(
    f"a{number}: calc 2000\n" for number in range(100_000)) + "}\n"
# One step of a profiler's trace, with 6 MB of kernels.
TRACE = json.dumps({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0,
     "dur": 1_000_000},
    *({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20 * number,
       "dur": 15} for number in range(50_000))]})
REQUESTS = 70_000 * "\n" + "".join(
    json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": name, "arguments": arguments}}) + "\n"
    for number, (name, arguments) in enumerate([
        ("list", {"topic": "figures"}), ("predict", {"scenario": SCENARIO}),
        *(("list", {"topic": "schedules"}) for _ in range(20))]))

PREDICT = "--model llama-3.1-8b --cluster dgx-h100x2 --global-batch 64 --tp 2 --pp 4 --seq 4096"
PLAN = "plan --model gpt2-xl --global-batch 16 --seq 1024 --threads 1 --replays 4"
FIXED = f"{PLAN} --fix pp=1,micro_batch=1,zero=1"
MEASURE = "calibrate in/local.json --budget 1 --no-grid -o out/mine.json"


@dataclasses.dataclass
class Command:
    name: str
    line: str
    outputs: tuple = ()
    program: str = "stepcast"  # whose calls fail
    inputs: dict = dataclasses.field(default_factory=dict)
    stdin: str = ""  # an input
    old: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    least: dict = dataclasses.field(default_factory=dict)
    launches: bool = False  # starts ranks: seconds, and other processes
    # Files that hold measurements or the machine's facts differ: they must be whole, not equal.
    measures: bool = False
    at_once: bool = False  # what it prints is there again at once, and not worth a file

    @property
    def words(self):
        return self.line.split()


def least(opened, written, files=0):
    """Calls of a command that publishes so many files: each is synchronised, then its folder."""
    return {"open": opened, "write": written, "sync": 2 * files, "rename": files, "allocation": 50}


def commands(binaries):
    fake = {"STEPCAST_RANK_PROGRAM": str(binaries / "tests" / "cli_fake_rank")}
    scenario = {"scenario.json": json.dumps(SCENARIO)}
    local = {"local.json": json.dumps(LOCAL)}
    suite = {"suite.json": json.dumps(SUITE)}
    table = {TABLE: (SOURCE / "tests/data/imports" / TABLE).read_text()}
    return [
        Command("predict", f"predict {PREDICT}", least=least(7, 1)),
        Command("predict to files",
                f"predict {PREDICT} --format json -o out/p.json --html out/p.html "
                "--trace out/t.json --memory-timeline out/m.json",
                ("p.json", "p.html", "t.json", "m.json"), least=least(15, 4, 4)),
        Command("predict a file", "predict in/scenario.json --explain --format md",
                inputs=scenario, least=least(8, 1)),
        Command("predict a config",
                "predict --model in/config.json --cluster dgx-a100-80gx1 --global-batch 8 "
                "--format csv -o out/p.csv",
                ("p.csv",), inputs={"config.json": json.dumps(CONFIG)}, least=least(9, 1, 1)),
        Command("plan", f"{FIXED} --cluster dgx-a100-80gx1 --format json -o out/plan.json "
                "--html out/plan.html", ("plan.json", "plan.html"), least=least(14, 2, 2)),
        Command("plan why not", f"{FIXED} --cluster dgx-a100-80gx1 --why-not tp=2",
                least=least(13, 1)),
        Command("plan offers", f"{FIXED} --clusters dgx-a100-80g,dgx-h100 --gpus 4 --format csv "
                "-o out/offers.csv --html out/offers.html", ("offers.csv", "offers.html"),
                least=least(19, 2, 2)),
        Command("plan advise", f"{PLAN} --cluster dgx-a100-80gx1 --gpus 1 --fix micro_batch=1 "
                "--advise", least=least(16, 1)),
        Command("compare", f"compare {PREDICT} --vary layout.zero=0,1 --threads 1 -o out/c.txt "
                "--html out/c.html", ("c.txt", "c.html"), least=least(14, 2, 2)),
        Command("compare tornado", f"compare {PREDICT} --tornado 20 --threads 1",
                least=least(7, 1)),
        Command("check", "check in/suite.json --threads 1 -o out/c.txt --md out/c.md "
                "--html out/c.html --errors out/e.json", ("c.txt", "c.md", "c.html", "e.json"),
                inputs=suite, least=least(18, 4, 4)),
        Command("check update", "check in/suite.json --threads 1 --baseline out/b.json --update "
                "--format junit", ("b.json",), inputs=suite,
                old={"b.json": json.dumps(BASELINE)}, least=least(12, 2, 1)),
        Command("export", "export in/scenario.json --to megatron -o out/train.sh", ("train.sh",),
                inputs=scenario, least=least(9, 1, 1)),
        Command("export a folder", "export in/scenario.json --to slurm,rankmap -o out/run/",
                ("run",), inputs=scenario, least=least(9, 2, 2)),
        Command("import", "import in/megatron.sh --cluster dgx-a100-80gx4 -o out/s.json",
                ("s.json",), inputs={"megatron.sh": MEGATRON}, least=least(5, 1, 1)),
        Command("calibrate import",
                f"calibrate --import in/{TABLE} --cluster gcp-a3-mega -o out/mine.json",
                ("mine.json",), inputs=table, least=least(6, 1, 1)),
        Command("validate", "validate in/local.json --calibrate never -o out/v.txt "
                "--html out/v.html --md out/v.md --baseline out/b.json --update "
                "--tolerance step_time=1e9", ("v.txt", "v.html", "v.md", "b.json"), inputs=local,
                old={"b.json": None}, environment=fake, launches=True, least=least(15, 5, 5)),
        Command("validate, in a rank", "validate in/local.json --calibrate never --steps 2 "
                "--warmup 0 --format json -o out/v.json", ("v.json",), program="stepcast-rank",
                inputs=local, launches=True, measures=True, least=least(3, 1, 1)),
        Command("calibrate", MEASURE, ("mine.json",), inputs=local, launches=True, measures=True,
                least=least(10, 2, 2)),
        Command("calibrate, in a rank", MEASURE, ("mine.json",), program="stepcast-rank",
                inputs=local, launches=True, measures=True, least=least(4, 2, 1)),
        Command("import a log", "import in/run.log --cluster dgx-h100x2 --model llama-3.1-8b "
                "--suite out/s.json", ("s.json",), inputs={"run.log": LOG}, old={"s.json": None},
                least=least(6, 1, 1)),
        Command("gate init", "gate init out/runs.json --logs in/run.log --cluster dgx-h100x2 "
                "--model llama-3.1-8b --workflow out/gate.yml",
                ("runs.json", "baseline.json", "gate.yml"), inputs={"run.log": LOG},
                old={"runs.json": None, "baseline.json": None, "gate.yml": None},
                least=least(6, 3, 3)),
        Command("diagnose a trace", f"diagnose {PREDICT} --trace in/trace.json -o out/d.txt",
                ("d.txt",), inputs={"trace.json": TRACE}, least=least(6, 1, 1)),
        Command("replay", "replay in/app.goal --cluster dgx-h100 -o out/r.txt", ("r.txt",),
                inputs={"app.goal": GOAL}, least=least(4, 1, 1)),
        Command("export traces", "export --model gpt2 --cluster dgx-h100x1 --global-batch 8 "
                "--to chakra -o out/run/", ("run",), least=least(10, 9, 9)),
        # A fault of a tool is told in its answer: what is written differs, and the server goes on.
        Command("serve", "serve --mcp", inputs={"requests": REQUESTS}, stdin="requests",
                measures=True, at_once=True, least=least(5, 20)),
        Command("show models", "show models --format json -o out/m.json", ("m.json",),
                at_once=True, least=least(100, 1, 1)),
        Command("show clusters", "show clusters", at_once=True, least=least(20, 1)),
        Command("topology show", "topology show dgx-h100x2", at_once=True, least=least(2, 1)),
        Command("topology check", "topology check dgx-h100", at_once=True, least=least(2, 1)),
        Command("doctor", "doctor", measures=True, at_once=True, least=least(5, 1)),
        Command("help", "predict --help", at_once=True, least=least(0, 1)),
    ]
