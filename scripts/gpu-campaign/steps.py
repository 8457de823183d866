# SPDX-License-Identifier: Apache-2.0
"""The steps of a campaign, in the order in which they run: what each needs and brings."""

import dataclasses
import pathlib

CAMPAIGN = pathlib.Path(__file__).resolve().parent
ROOT = CAMPAIGN.parents[1]
NUMERICS = "numerics"  # the scenario whose losses are held against one rank in fp32

# Under compute-sanitizer a test takes some ten times as long: one type and one shape of each kind
# of kernel, with those that share memory among threads.
MEMCHECK = ":".join(f"{suite}/bf16.{test}" for suite, test in (
    ("Attention", "EqualsTheCpuAcrossTiles"), ("Attention", "GroupsOfEightShareKeys"),
    ("UnfusedAttention", "*"), ("Norm", "*"), ("CrossEntropy", "*"), ("Activation", "*"),
    ("Rotary", "*"), ("Embedding", "*"), ("Elementwise", "*")))
RACECHECK = ":".join(f"{suite}/bf16.{test}" for suite, test in (
    ("Attention", "EqualsTheCpuInsideOneTile"), ("UnfusedAttention", "SoftmaxEqualsTheCpuAlso*"),
    ("Norm", "EqualsTheCpuInABlock"), ("CrossEntropy", "EqualsTheCpu"),
    ("Elementwise", "SumOfSquares*"), ("Elementwise", "BiasIsAdded*"), ("Embedding", "Gradient*")))


@dataclasses.dataclass(frozen=True)
class Step:
    name: str       # of its log, too
    slice: str
    command: tuple  # without `result`, which follows its `option`
    needs_s: float  # it is not begun with less time left
    limit_s: float  # it is ended after that, and gets all the time there is when it is tried again
    result: str = ""  # a file that it writes when all went well
    after: str = ""   # a file of an earlier step that it reads
    tool: str = ""    # a program that the machine may lack
    kind: str = ""    # of steps that take about as long as each other


def tests(programs):
    kernels = programs / "test_kernels_cuda"
    yield Step("tests", "tests", (kernels, "--gtest_output=json:tests.json"), 90, 200, "tests.json")
    yield Step("communication", "tests",
               (programs / "test_comm_nccl", "--gtest_output=json:communication.json"),
               20, 40, "communication.json")
    for tool, subset in (("memcheck", MEMCHECK), ("racecheck", RACECHECK)):
        result = f"{tool}.json"
        yield Step(tool, "tests",
                   ("compute-sanitizer", "--tool", tool, "--target-processes", "all",
                    "--error-exitcode", "9", kernels, f"--gtest_filter={subset}",
                    f"--gtest_output=json:{result}"),
                   40, 130, result, tool="compute-sanitizer")


def calibration(programs, scenarios, options):
    yield Step("calibrate", "calibration",
               (programs / "stepcast", "calibrate", "--backend", "cuda", *scenarios.values(),
                "--data", ROOT, "--budget", str(options.budget), "--ranks", str(options.gpus),
                "-o", "profile.json"),
               120, 520, "profile.json")


def validations(programs, scenarios):
    """The numerics first, of one small model; the others time and count memory alone."""
    names = sorted(scenarios, key=lambda name: (name != NUMERICS, name))
    for name in names:
        result = f"validate-{name}.json"
        numerics = ["--numerics-steps", "3"] if name == NUMERICS else ["--no-numerics"]
        yield Step(f"validate-{name}", "validation",
                   (programs / "stepcast", "validate", scenarios[name], "--backend", "cuda",
                    "--rank", "0", "--profile", "profile.json", "--calibrate", "never",
                    "--data", ROOT, "--warmup", "1", "--steps", "4", "--time-limit", "110",
                    "--format", "json", *numerics, "-o", result),
                   40, 120, result, "profile.json", kind="validate")


def comparison(programs, scenarios):
    python = ("python3", "-B")
    yield Step("pytorch", "pytorch",
               (*python, CAMPAIGN / "pytorch.py", "profile.json", "-o", "pytorch.json"),
               100, 180, "pytorch.json", "profile.json")
    for name, scenario in scenarios.items():
        if name == NUMERICS:
            continue
        result = f"pytorch-steps-{name}.json"
        yield Step(f"pytorch-steps-{name}", "pytorch",
                   (*python, CAMPAIGN / "pytorch_steps.py", scenario, "--data", ROOT,
                    "--stepcast", programs / "stepcast", "-o", result),
                   150, 260, result, kind="pytorch-steps")


def all_steps(programs, scenarios, options):
    """`programs`: their folder; `scenarios`: files by name, those that fit the card."""
    yield Step("doctor", "tests",
               (programs / "stepcast", "doctor", "--format", "json", "--data", ROOT, "-o",
                "doctor.json"), 5, 20, "doctor.json")
    yield from tests(programs)
    yield from calibration(programs, scenarios, options)
    yield from validations(programs, scenarios)
    yield from comparison(programs, scenarios)
