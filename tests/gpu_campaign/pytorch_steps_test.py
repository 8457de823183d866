#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what the campaign measures in PyTorch, as far as can be tried without PyTorch."""

import copy
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "scripts/gpu-campaign"
sys.path.insert(0, str(CAMPAIGN))

import growing_result  # noqa: E402
import power  # noqa: E402
import pytorch  # noqa: E402
import pytorch_decoder  # noqa: E402
import pytorch_steps  # noqa: E402
import rank_share  # noqa: E402
import shape_torch  # noqa: E402
import steps  # noqa: E402

TINY = {
    "stepcast": 1,
    "model": {"name": "tiny", "layers": 5, "hidden": 64, "heads": 8, "kv_heads": 2, "ffn": 96,
              "vocab": 1001, "max_positions": 128, "mlp": "swiglu", "norm": "rmsnorm",
              "position": "rope", "tied_embeddings": False, "biases": False},
    "cluster": {"base": "dgx-h200", "nodes": 1},
    "training": {"global_batch": 8, "sequence_length": 64, "framework": "native"},
    "layout": {"micro_batch": 1},
}


def predicted(scenario):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "scenario.json"
        file.write_text(scenario if isinstance(scenario, str) else json.dumps(scenario))
        return rank_share.forecast(os.environ["STEPCAST"], ROOT, file)


def varied(**parts):
    out = copy.deepcopy(TINY)
    for part, keys in parts.items():
        out[part].update(keys)
    return out


def share_of(**parts):
    return rank_share.share_of(predicted(varied(**parts))["resolved"])


class Shares(unittest.TestCase):
    def test_parameters_are_those_of_the_forecast(self):
        # The optimizer keeps 12 bytes for each parameter: fp32 weights and two moments.
        scenarios = {file.stem: file.read_text().replace('"CLUSTER"', '"dgx-h200"')
                     for file in sorted(CAMPAIGN.glob("*.json"))
                     if file.stem not in steps.WITHOUT_PYTORCH}
        self.assertGreaterEqual(len(scenarios), 9)
        scenarios["biases in parts"] = varied(model={"qkv_bias": True, "norm": "layernorm",
                                                     "norm_bias": True})
        scenarios["vocabulary of a multiple"] = varied(model={"vocab_multiple": 96},
                                                       layout={"tp": 2})
        scenarios["uneven stages"] = varied(layout={"pp": 2})
        for name, scenario in scenarios.items():
            with self.subTest(name):
                forecast = predicted(scenario)
                share = rank_share.share_of(forecast["resolved"])
                memory = forecast["rank_classes"][0]["memory_bytes"]
                self.assertEqual(12 * share.parameters(), memory["optimizer"] * share.owners)

    def test_whole_models_have_their_published_counts(self):
        # The vocabulary of GPT-2 is padded from 50257 rows of 1600 to 50304.
        for name, count in (("gpt2-xl", 1557611200 + 47 * 1600), ("llama-3.2-1b", 1235814400),
                            ("llama-3.1-8b", 8030261248)):
            scenario = varied()
            scenario["model"] = name
            share = rank_share.share_of(predicted(scenario)["resolved"])
            self.assertEqual(share.parameters(), count)

    def test_a_rank_has_its_slices(self):
        share = share_of(layout={"tp": 2, "pp": 2})
        self.assertEqual((share.heads, share.kv_heads, share.ffn, share.vocab), (4, 1, 48, 512))
        self.assertEqual((share.sequence, share.rows), (64, 32))
        self.assertEqual((share.layers, share.first, share.last), (3, True, False))
        names = [name for name, _ in share.outside()]
        self.assertEqual(names, ["embedding"])
        self.assertEqual(share.micro_batches, 4)  # 8 sequences over 2 data-parallel ranks

    def test_a_sharded_optimizer_updates_its_part(self):
        self.assertEqual(share_of(layout={"zero": 1}).owners, 8)
        self.assertEqual(share_of().owners, 1)

    def test_what_is_not_measured_is_refused_by_name(self):
        resolved = predicted(TINY)["resolved"]
        resolved["model"]["moe"] = {"experts": 8, "top_k": 2, "ffn": 96}
        with self.assertRaisesRegex(rank_share.Refused, "model.moe: models with experts"):
            rank_share.share_of(resolved)
        for parts, expected in (
                ({"model": {"position": "alibi"}}, "model.position: alibi"),
                ({"model": {"query_key_norm": True}}, "model.query_key_norm"),
                ({"layout": {"recompute": "full"}}, "layout.recompute: full"),
                ({"training": {"framework": "megatron"}}, "training.framework: megatron")):
            with self.subTest(expected), self.assertRaises(rank_share.Refused) as caught:
                share_of(**parts)
            self.assertIn(expected, str(caught.exception))

    def test_an_illegal_scenario_is_refused_with_its_reason(self):
        with self.assertRaises(rank_share.Refused) as caught:
            predicted(varied(layout={"tp": 3}))
        self.assertIn("layout.tp", str(caught.exception))

    def test_what_is_left_out_is_said(self):
        resolved = predicted(varied(layout={"tp": 2, "pp": 2, "zero": 1}))["resolved"]
        said = " ".join(rank_share.left_out(resolved))
        for words in ("2 tensor-parallel", "2 stages", "2 data-parallel", "1/2 of each"):
            self.assertIn(words, said)
        alone = varied(cluster={"nodes": 1, "gpus": 1})
        del alone["cluster"]["nodes"]
        self.assertEqual(rank_share.left_out(predicted(alone)["resolved"]), [])


class Shapes(unittest.TestCase):
    """The tensor code on a stand-in for PyTorch that checks shapes and types."""

    def steps_of(self, **parts):
        share = share_of(**parts)
        torch = shape_torch.module()
        return share, pytorch_steps.time_steps(torch, share, True, 0.01)

    def test_whole_models_and_ranks_of_larger_layouts(self):
        gpt = {"mlp": "gelu", "norm": "layernorm", "position": "learned", "kv_heads": 8,
               "biases": True, "tied_embeddings": True}
        for name, parts in (("llama", {}), ("gpt", {"model": gpt}),
                            ("dropout", {"model": {**gpt, "dropout": 0.1}}),
                            ("micro-batches", {"layout": {"micro_batch": 2, "dp": 2, "tp": 4}}),
                            ("no sequence parallelism",
                             {"model": gpt, "layout": {"tp": 2, "sequence_parallel": False}}),
                            ("gpt, tp", {"model": gpt, "layout": {"tp": 4}}),
                            ("tp and pp", {"layout": {"tp": 2, "pp": 4, "micro_batch": 2}}),
                            ("gpt, tp and pp", {"model": gpt, "layout": {"tp": 4, "pp": 2}})):
            with self.subTest(name):
                share, found = self.steps_of(**parts)
                steps = found["n"] + pytorch_steps.WARM_UP + 1
                self.assertEqual(sum(shape_torch.updates), steps * share.parameters())
                self.assertEqual(len(found["losses"]), steps if share.last else 0)
                # Two of each in a layer; one scatter behind the embedding, a gather for the head.
                passes = steps * share.micro_batches if share.sequence_parallel else 0
                self.assertEqual(shape_torch.backwards.count("Scatter"),
                                 passes * (2 * share.layers + 1))
                self.assertEqual(shape_torch.backwards.count("Gather"),
                                 passes * (2 * share.layers + share.last))

    def test_sharded_optimizers_update_a_part_of_every_parameter(self):
        share, found = self.steps_of(layout={"zero": 1})
        counts = [-(-size // 8) for size in
                  [math.prod(shape) for _, shape in share.block()] * share.layers +
                  [math.prod(shape) for _, shape in share.outside()]]
        self.assertEqual(sum(shape_torch.updates),
                         (found["n"] + pytorch_steps.WARM_UP + 1) * sum(counts))


class Figures(unittest.TestCase):
    def test_spread(self):
        found = pytorch_steps.spread([5.0, 1.0, 2.0, 4.0, 3.0])
        self.assertEqual(found["step_time_s"], 3.0)
        self.assertAlmostEqual(found["step_time_p10_s"], 1.4)
        self.assertAlmostEqual(found["step_time_p90_s"], 4.6)
        self.assertEqual(found["n"], 5)

    def test_groups_of_an_update_keep_order_and_bound(self):
        self.assertEqual(pytorch_decoder.grouped([3, 4, 9, 1, 2, 5], 8), [[0, 1], [2], [3, 4, 5]])
        self.assertEqual(pytorch_decoder.grouped([], 8), [])


class Ended(BaseException):
    """The process is ended."""


class Measurements(unittest.TestCase):
    """Which scenarios and modes are measured, kept and reported; the steps are a stand-in."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "out.json"
        self.torch = types.ModuleType("torch")
        self.torch.__version__ = "2.5.1"
        self.torch.cuda = shape_torch.cuda()
        self.torch.nn = types.SimpleNamespace(attention=shape_torch.choices_of_attention())
        self.calls = []

    def scenario(self, name, **parts):
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(varied(**parts)))
        return file

    def run_main(self, *scenarios, fails=(), ends_in=None):
        """`ends_in`: the (compiled, backend) in which the process is ended."""
        def time_steps(torch, share, compiled, seconds):
            backend = torch.nn.attention.chosen
            self.calls.append((share.ffn, compiled, backend))
            if (compiled, backend) == ends_in:
                raise Ended
            if compiled in fails or backend in fails:
                raise RuntimeError("CUDA out of memory\nand more")
            seconds = {"cudnn": 0.1, "flash": 0.2}[backend]
            return {**pytorch_steps.spread([seconds]), "losses": [7.0]}
        command = ["pytorch_steps.py", *map(str, scenarios), "--stepcast", os.environ["STEPCAST"],
                   "--data", str(ROOT), "-o", str(self.output)]
        with mock.patch.dict(sys.modules, torch=self.torch), \
                mock.patch.object(pytorch_steps, "time_steps", time_steps), \
                mock.patch.object(sys, "argv", command), mock.patch("builtins.print"):
            pytorch_steps.main()
        return json.loads(self.output.read_text())

    def test_a_mode_that_fails_is_reported_and_the_other_goes_on(self):
        result = self.run_main(self.scenario("tiny"), fails=(True,))
        entry = result["scenarios"][0]
        self.assertEqual(entry["eager"]["step_time_s"], 0.1)
        self.assertEqual(entry["compiled"]["error"], "RuntimeError: CUDA out of memory")

    def test_the_faster_attention_counts_and_the_other_is_kept(self):
        entry = self.run_main(self.scenario("tiny"))["scenarios"][0]
        self.assertEqual((entry["eager"]["attention"], entry["eager"]["step_time_s"]),
                         ("cudnn", 0.1))
        self.assertEqual(entry["by_attention"]["compiled"]["flash"]["step_time_s"], 0.2)
        entry = self.run_main(self.scenario("tiny", model={"ffn": 32}),
                              fails=("cudnn",))["scenarios"][0]
        self.assertEqual((entry["compiled"]["attention"], entry["compiled"]["step_time_s"]),
                         ("flash", 0.2))
        self.assertIn("out of memory", entry["by_attention"]["eager"]["cudnn"]["error"])

    def test_a_pytorch_without_a_choice_of_attention_says_so(self):
        del self.torch.nn.attention.SDPBackend.CUDNN_ATTENTION
        entry = self.run_main(self.scenario("tiny"))["scenarios"][0]
        self.assertEqual(entry["eager"]["attention"], "flash")
        self.assertEqual(entry["by_attention"]["eager"]["cudnn"],
                         {"error": "RuntimeError: PyTorch 2.5.1 does not choose attention by "
                                   "cudnn"})

    def test_a_refused_scenario_is_reported_and_the_next_goes_on(self):
        result = self.run_main(self.scenario("other", model={"query_key_norm": True}),
                               self.scenario("tiny"))
        self.assertIn("model.query_key_norm", result["scenarios"][0]["refused"])
        self.assertEqual(result["scenarios"][1]["parameters"], share_of().parameters())
        self.assertEqual((result["torch"], result["device"]), ("2.5.1", "a card"))

    def test_a_call_that_is_ended_keeps_what_it_has_and_the_next_begins_with_the_others(self):
        tiny = self.scenario("tiny")
        with self.assertRaises(Ended):
            self.run_main(tiny, ends_in=(False, "flash"))
        entry = json.loads(self.output.read_text())["scenarios"][0]
        self.assertEqual(entry["eager"]["step_time_s"], 0.1)
        self.assertNotIn("compiled", entry)
        with self.assertRaises(Ended):
            self.run_main(tiny, ends_in=(False, "flash"))
        self.assertEqual(self.calls[2:], [(96, True, "cudnn"), (96, True, "flash"),
                                          (96, False, "flash")])
        entry = self.run_main(tiny)["scenarios"][0]  # it is not tried a third time
        self.assertEqual(len(self.calls), 5)
        self.assertEqual(entry["compiled"]["step_time_s"], 0.1)
        self.assertIn("ended its process", entry["by_attention"]["eager"]["flash"]["error"])

    def test_a_broken_gpu_ends_the_call_with_its_reason(self):
        def broken():
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.torch.cuda.synchronize = broken
        with self.assertRaises(SystemExit) as caught:
            self.run_main(self.scenario("tiny"), fails=(False,))
        self.assertRegex(str(caught.exception), "tiny eager cudnn .*: RuntimeError: CUDA out of "
                         "memory; the GPU runs nothing any more in this process: .*illegal memory")
        self.torch.cuda.synchronize = lambda: None
        entry = self.run_main(self.scenario("tiny"))["scenarios"][0]
        self.assertEqual(self.calls[-1], (96, False, "cudnn"))  # the others come first
        self.assertEqual(len(entry["by_attention"]["eager"]), 2)

    def test_a_later_call_measures_what_is_missing_or_changed(self):
        first, second = self.scenario("first"), self.scenario("second", model={"ffn": 32})
        def of(ffn):
            return [(ffn, compiled, backend) for compiled in (False, True)
                    for backend in ("cudnn", "flash")]
        self.run_main(first)
        self.run_main(first, second)
        self.assertEqual(self.calls, of(96) + of(32))
        self.scenario("first", model={"ffn": 128})
        result = self.run_main(first, second)
        self.assertEqual(self.calls[8:], of(128))
        self.assertEqual([entry["scenario"] for entry in result["scenarios"]], ["first", "second"])
        self.torch.__version__ = "2.6.0"
        self.run_main(second)
        self.assertEqual(self.calls[12:], of(32))


class Kernels(unittest.TestCase):
    """Tests what of a profile is timed in PyTorch; the timer is a stand-in."""

    def compare(self, name, output, most=4):
        profile = json.loads((ROOT / "calibrate/profiles" / f"{name}.json").read_text())
        torch = shape_torch.module()
        result = growing_result.GrowingResult(output, {"torch": "2.5.1", "device": "a card"})
        pytorch.compare(pytorch.Timer(torch), profile, result, most)
        return json.loads(output.read_text())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "pytorch.json"

    def test_a_shipped_profile_has_published_times_instead(self):
        result = self.compare("h200-sxm5-141g", self.output)
        self.assertEqual(result["profile"], {"name": "h200-sxm5-141g", "own": False})
        kinds = [row["kind"] for row in result["kernels"]]
        self.assertEqual(kinds, ["gemm", "attention"] * 4)
        self.assertIn("copy_bytes_per_s", result["streams"])

    def test_a_later_call_times_what_is_missing_alone(self):
        before = self.compare("h200-sxm5-141g", self.output)
        kept = list(before["measured"])[:4]
        before["measured"] = {key: before["measured"][key] for key in kept}
        before["trying"] = lost = list(self.compare("h200-sxm5-141g", self.output)["measured"])[5]
        self.output.write_text(json.dumps(before))
        asked = []
        with mock.patch.object(pytorch.Timer, "seconds_of",
                               lambda timer, call, copies: asked.append(copies) or 1.0):
            after = self.compare("h200-sxm5-141g", self.output)
        self.assertEqual(after["measured"][kept[0]], before["measured"][kept[0]])
        self.assertEqual(len(after["measured"]), 1 + 8)
        self.assertEqual(list(after["measured"])[-1], lost)  # it had ended its process
        self.assertEqual(after["ended"], {lost: 1})
        self.assertGreater(len(asked), 4)


class PretendedNvml:
    """A card that draws 650 W at 1500 MHz."""

    def __init__(self):
        self.begin = time.monotonic()

    def energy_j(self):
        return 650 * (time.monotonic() - self.begin)

    def clock_mhz(self):
        return 1500


class Power(unittest.TestCase):
    def setUp(self):
        self.torch = shape_torch.module()
        self.runner = power.Runner(self.torch, PretendedNvml(), seconds=0.02)
        self.cases = power.cases(self.torch, self.runner)

    def test_every_kernel_is_called_as_pytorch_has_it(self):
        self.assertIn("gemm fp8 8192x8192x8192", self.cases)
        self.assertIn("attention backward 128", self.cases)
        with mock.patch.object(power, "REST_S", 0):
            for name, measure in self.cases.items():
                with self.subTest(name):
                    found = measure()
                    self.assertAlmostEqual(found["power_w"], 650, delta=30)
                    self.assertEqual(found["sm_clock_mhz"], 1500)
                    self.assertGreater(found["call_s"], 0)

    def test_sums_take_their_share_of_a_mixture(self):
        # All calls take as long: 0.8 of the time are four sums to a product.
        def make():
            return lambda: calls.append("product")
        for share, products, sums in ((0.8, 1, 4), (0.5, 1, 1), (0.2, 4, 1)):
            calls = []
            call, counts = power.in_turns(self.torch, self.runner, make, share)
            self.assertEqual(counts, {"products": products, "sums": sums})
            calls.clear()
            call()
            self.assertEqual(len(calls), products)


class CommandLine(unittest.TestCase):
    def run_script(self, *words):
        # Isolated from any PyTorch that may be here.
        program = ("import sys; sys.modules['torch'] = None; sys.path.insert(0, sys.argv[1]); "
                   "sys.argv = ['pytorch_steps.py'] + sys.argv[2:]; "
                   "import pytorch_steps; pytorch_steps.main()")
        return subprocess.run([sys.executable, "-B", "-c", program, str(CAMPAIGN),
                               *map(str, words)], capture_output=True, text=True, check=False)

    def test_without_pytorch_it_says_so(self):
        done = self.run_script(CAMPAIGN / "gpt2-xl.json", "--stepcast", os.environ["STEPCAST"],
                               "-o", "/nowhere/out.json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.strip(), "pytorch_steps.py: PyTorch is not installed here")

    def test_a_scenario_that_is_not_there_is_named(self):
        done = self.run_script("/nowhere/a.json", "--stepcast", os.environ["STEPCAST"], "-o", "b")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.strip(), "pytorch_steps.py: /nowhere/a.json: No such file")


if __name__ == "__main__":
    unittest.main()
