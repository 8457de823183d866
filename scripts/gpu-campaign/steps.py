# SPDX-License-Identifier: Apache-2.0
"""The steps of a campaign, in the order in which they run: what each needs and brings."""

import dataclasses
import pathlib

CAMPAIGN = pathlib.Path(__file__).resolve().parent
ROOT = CAMPAIGN.parents[1]
NUMERICS = "numerics"
# The scenarios whose losses are held against one rank in fp32.
WITH_NUMERICS = (NUMERICS, "numerics-experts")
FIRST = (NUMERICS, "llama-3.2-1b")  # what is measured before anything else is
# The executor runs no fp8: its kernels are calibrated, so that forecasts have their times.
CALIBRATED_ALONE = ("llama-3.2-1b-fp8", "qwen3-30b-a3b-ep8-fp8")
# pytorch_steps.py has no layers of experts.
WITHOUT_PYTORCH = (*CALIBRATED_ALONE, "numerics-experts", "qwen3-30b-a3b-ep8")
PROFILE = "profile.json"

SLICES = ("first", "wider", "sanitizers")

# A campaign is for these goals, by the name that steps give them in `brings`.
GOALS = {"profile": "a profile of this card", "validation": "a validated step",
         "comparison": "a comparison with PyTorch"}

# Words of a command that are known when it begins: the profile's file or name, and the seconds that
# it may take.
THE_PROFILE, THE_SECONDS = object(), object()
TO_END_S = 10  # for a program that ends itself, before it is ended

# Under compute-sanitizer a test takes some ten times as long: one type and one shape of each kind
# of kernel, with those that share memory among threads.
MEMCHECK = ":".join(f"{suite}/bf16.{test}" for suite, test in (
    ("Attention", "EqualsTheCpuAcrossTiles"), ("Attention", "GroupsOfEightShareKeys"),
    ("UnfusedAttention", "*"), ("Norm", "*"), ("CrossEntropy", "*"), ("Activation", "*"),
    ("Rotary", "*"), ("Embedding", "*"), ("Elementwise", "*"), ("TokenRows", "*"),
    ("ExpertActivation", "*"), ("LatentRotary", "*"), ("Dropout", "*"), ("Fp8Of", "*"))
) + ":Router.*"
RACECHECK = ":".join(f"{suite}/bf16.{test}" for suite, test in (
    ("Attention", "EqualsTheCpuInsideOneTile"), ("UnfusedAttention", "SoftmaxEqualsTheCpuAlso*"),
    ("Norm", "EqualsTheCpuInABlock"), ("CrossEntropy", "EqualsTheCpu"),
    ("Elementwise", "SumOfSquares*"), ("Elementwise", "BiasIsAdded*"), ("Embedding", "Gradient*"),
    ("TokenRows", "AreAddedUp*"), ("ExpertActivation", "*"), ("Fp8Of", "Casts*"))
) + ":Router.MakesTheRows*"


@dataclasses.dataclass(frozen=True)
class Step:
    name: str       # of its log, too
    slice: str
    command: tuple
    needs_s: float  # it is not begun with less time left
    limit_s: float  # it is ended after that
    result: str     # a file that it writes
    tool: str = ""    # a program that the machine may lack
    kind: str = ""    # of steps that take about as long as each other
    brings: str = ""  # one of GOALS
    # It goes on from what an earlier run has left, and has its result only when it ends with 0.
    goes_on: bool = False
    needless_after: str = ""  # a step that brings more of the same

    @property
    def rank(self):
        return SLICES.index(self.slice)

    @property
    def profile(self):
        """Whether it reads one."""
        return THE_PROFILE in self.command

    def command_with(self, profile, limit_s):
        known = {THE_PROFILE: profile, THE_SECONDS: f"{max(1, limit_s - TO_END_S):.0f}"}
        return tuple(known.get(word, word) for word in self.command)


def calibration(name, programs, scenarios, options, budget_s, **rest):
    return Step(name, rest.pop("slice"),
                (programs / "stepcast", "calibrate", "--backend", "cuda", *scenarios.values(),
                 "--data", ROOT, "--budget", str(budget_s), "--ranks", str(options.gpus),
                 "--keep-journal", "-o", PROFILE),
                result=PROFILE, brings="profile", goes_on=True, **rest)


def validation(name, programs, scenario, which):
    """Losses of the small models for numerics; the others time and count memory alone."""
    result = f"validate-{name}.json"
    numerics = ["--numerics-steps", "3"] if name in WITH_NUMERICS else ["--no-numerics"]
    return Step(f"validate-{name}", which,
                (programs / "stepcast", "validate", scenario, "--backend", "cuda", "--rank", "0",
                 "--profile", THE_PROFILE, "--calibrate", "never", "--data", ROOT, "--warmup", "1",
                 "--steps", "4", "--time-limit", THE_SECONDS, "--format", "json", *numerics,
                 "-o", result),
                40, 120, result, kind="validate", brings="validation")


def pytorch_steps(name, programs, scenario, which):
    result = f"pytorch-steps-{name}.json"
    return Step(f"pytorch-steps-{name}", which,
                ("python3", "-B", CAMPAIGN / "pytorch_steps.py", scenario, "--data", ROOT,
                 "--stepcast", programs / "stepcast", "-o", result),
                150, 260, result, kind="pytorch-steps", brings="comparison", goes_on=True)


def first(programs, scenarios, options):
    """One thin cut through everything, which is worth most if nothing follows."""
    yield Step("doctor", "first",
               (programs / "stepcast", "doctor", "--format", "json", "--data", ROOT, "-o",
                "doctor.json"), 5, 60, "doctor.json")
    yield Step("tests", "first",
               (programs / "test_kernels_gpu", "--gtest_output=json:tests.json"), 90, 200,
               "tests.json")
    if scenarios:
        yield calibration("calibrate-first", programs, scenarios, options,
                          min(options.first_budget, options.budget), slice="first", needs_s=90,
                          limit_s=300, needless_after="calibrate")
    for name, scenario in scenarios.items():
        yield validation(name, programs, scenario, "first")
    for name, scenario in scenarios.items():
        if name != NUMERICS:
            yield pytorch_steps(name, programs, scenario, "first")
    yield Step("pytorch", "first",
               ("python3", "-B", CAMPAIGN / "pytorch.py", THE_PROFILE, "-o", "pytorch.json"),
               100, 180, "pytorch.json", brings="comparison", goes_on=True)


def wider(programs, scenarios, options):
    yield Step("communication", "wider",
               (programs / "test_comm_nccl", "--gtest_output=json:communication.json"),
               20, 40, "communication.json")
    yield calibration("calibrate", programs, scenarios, options, options.budget, slice="wider",
                      needs_s=120, limit_s=520)
    rest = {name: file for name, file in scenarios.items() if name not in FIRST}
    for name, scenario in rest.items():
        if name not in CALIBRATED_ALONE:
            yield validation(name, programs, scenario, "wider")
    for name, scenario in rest.items():
        if name not in WITHOUT_PYTORCH:
            yield pytorch_steps(name, programs, scenario, "wider")
    yield Step("power", "wider", ("python3", "-B", CAMPAIGN / "power.py", "-o", "power.json"),
               60, 120, "power.json", goes_on=True)


def sanitizers(programs):
    for tool, subset in (("memcheck", MEMCHECK), ("racecheck", RACECHECK)):
        result = f"{tool}.json"
        yield Step(tool, "sanitizers",
                   ("compute-sanitizer", "--tool", tool, "--target-processes", "all",
                    "--error-exitcode", "9", programs / "test_kernels_gpu",
                    f"--gtest_filter={subset}", f"--gtest_output=json:{result}"),
                   40, 130, result, tool="compute-sanitizer")


def all_steps(programs, scenarios, options):
    """`programs`: their folder; `scenarios`: files by name, those that fit the card."""
    yield from first(programs, {name: scenarios[name] for name in FIRST if name in scenarios},
                     options)
    yield from wider(programs, scenarios, options)
    yield from sanitizers(programs)
