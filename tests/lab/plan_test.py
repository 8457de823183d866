# SPDX-License-Identifier: Apache-2.0
"""Plans labs, and makes none: the shipped topologies through the program, and graphs by hand."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lab"))

import plan as planning  # noqa: E402
import shaping  # noqa: E402

LAB = str(ROOT / "scripts" / "lab.sh")
UNITS = {"kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}


def bits_per_s(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def printed(topology):
    done = subprocess.run([LAB, str(topology)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_hosts(text):
    """rank -> (host, gpu)."""
    rows = text.split("\n\n")[1].splitlines()[1:]
    return {int(row.split()[0]): (row.split()[1], row.split()[3]) for row in rows}


def printed_rates(text):
    """(from, to) -> bits/s."""
    rows = text.split("\n\n")[-2].splitlines()[1:]
    return {tuple(row.split()[:2]): bits_per_s(" ".join(row.split()[2:4])) for row in rows}


def graph(kinds, links):
    """A graph as the program prints it; each link (a, b, there, back) in bytes/s."""
    out = {"name": "by-hand", "vertices": [], "links": []}
    for name, kind in kinds.items():
        out["vertices"].append({"name": name, "kind": kind})
    for a, b, there, back in links:
        for ends, rate in (((a, b), there), ((b, a), back)):
            out["links"].append({"from": ends[0], "to": ends[1], "capacity": f"{rate} B/s",
                                 "latency": "1000 us"})
    return out


class ShippedTopologies(unittest.TestCase):
    def test_every_gpu_is_a_host_in_its_order(self):
        files = sorted((ROOT / "topologies" / "lab").glob("*.json"))
        self.assertEqual(len(files), 5)
        for file in files:
            with self.subTest(file.stem):
                spec = json.loads(file.read_text())
                per_node = spec["gpus_per_node"]
                expected = {rank: (f"rank{rank}", f"node{rank // per_node}/gpu{rank % per_node}")
                            for rank in range(spec["nodes"] * per_node)}
                self.assertEqual(printed_hosts(printed(file)), expected)

    def test_flat_is_one_switch_with_the_rate_of_the_nics(self):
        for name in ("flat4-1g", "flat4-100m", "flat8-300m"):
            with self.subTest(name):
                file = ROOT / "topologies" / "lab" / f"{name}.json"
                spec = json.loads(file.read_text())
                expected = {}
                for rank in range(spec["nodes"]):
                    # GPU, PCIe switch, NIC and leaf in a row: the NIC is the slowest of them.
                    expected[f"rank{rank}", "switch0"] = bits_per_s(spec["nic"])
                    expected["switch0", f"rank{rank}"] = bits_per_s(spec["nic"])
                self.assertEqual(printed_rates(printed(file)), expected)

    def test_two_nodes_are_two_switches_joined_by_the_rate_of_a_nic(self):
        for name in ("nodes2x2", "nodes2x4"):
            with self.subTest(name):
                file = ROOT / "topologies" / "lab" / f"{name}.json"
                spec = json.loads(file.read_text())
                # NIC, leaf and NIC have two neighbours each and are one link between the nodes.
                uplink = bits_per_s(spec["nic"])
                expected = {("switch0", "switch1"): uplink, ("switch1", "switch0"): uplink}
                for rank in range(2 * spec["gpus_per_node"]):
                    switch = f"switch{rank // spec['gpus_per_node']}"
                    expected[f"rank{rank}", switch] = bits_per_s(spec["pcie"])
                    expected[switch, f"rank{rank}"] = bits_per_s(spec["pcie"])
                self.assertEqual(printed_rates(printed(file)), expected)


class Graphs(unittest.TestCase):
    def test_a_chain_is_as_fast_as_its_slowest_link_in_each_direction(self):
        plan = planning.make_plan(graph(
            {"a": "gpu", "n": "nic", "b": "gpu", "m": "nic", "tor": "leaf"},
            [("a", "n", 5.0, 6.0), ("n", "tor", 3.0, 9.0), ("b", "m", 7.0, 7.0),
             ("m", "tor", 8.0, 2.0)]))
        # a -5- n -3- tor -2- m -7- b there, b -7- m -8- tor -9- n -6- a back; four links of 1 ms.
        self.assertEqual(plan.switches, {})
        self.assertEqual(plan.edges["a"]["b"].rate, 2.0)
        self.assertEqual(plan.edges["b"]["a"].rate, 6.0)
        self.assertAlmostEqual(plan.edges["a"]["b"].latency, 4e-3)

    def test_dead_ends_are_left_out(self):
        plan = planning.make_plan(graph(
            {"a": "gpu", "b": "gpu", "c": "gpu", "s": "pcie", "h": "host", "n": "nic"},
            [("a", "s", 1.0, 1.0), ("b", "s", 1.0, 1.0), ("c", "s", 1.0, 1.0), ("s", "h", 1.0, 1.0),
             ("s", "n", 1.0, 1.0)]))
        self.assertEqual(list(plan.switches), ["s"])
        self.assertEqual(list(plan.edges["s"]), ["a", "b", "c"])

    def test_a_path_prefers_nvlink_and_never_crosses_another_gpu(self):
        plan = planning.make_plan(graph(
            {"a": "gpu", "b": "gpu", "c": "gpu", "tor": "leaf"},
            [("a", "b", 9.0, 9.0), ("b", "c", 9.0, 9.0),
             ("a", "tor", 1.0, 1.0), ("b", "tor", 1.0, 1.0), ("c", "tor", 1.0, 1.0)]))
        self.assertEqual(list(plan.steps("a", "b")), [("a", "b")])
        self.assertEqual(list(plan.steps("a", "c")), [("a", "tor"), ("tor", "c")])

    def test_equal_paths_are_dealt_over_the_receivers(self):
        kinds = {"a": "gpu", "b": "gpu", "c": "gpu", "l": "leaf", "x": "spine", "y": "spine",
                 "m": "leaf"}
        links = [("a", "l", 1.0, 1.0), ("b", "m", 1.0, 1.0), ("c", "m", 1.0, 1.0)]
        # Four ports each, so that no spine is a mere link.
        for spine in ("x", "y"):
            links += [("l", spine, 1.0, 1.0), (spine, "m", 1.0, 1.0)]
            kinds[f"{spine}g"] = "gpu"
            links.append((f"{spine}g", spine, 1.0, 1.0))
        plan = planning.make_plan(graph(kinds, links))
        middle = {plan.next_hop["l"][target] for target in ("b", "c")}
        self.assertEqual(middle, {"x", "y"})

    def test_every_queue_holds_the_windows_that_cross_it(self):
        plan = planning.make_plan(graph(
            {"a": "gpu", "b": "gpu", "c": "gpu", "tor": "leaf"},
            [(name, "tor", 125e6, 125e6) for name in "abc"]))
        a, b, _ = plan.hosts
        # 4 links of 1 ms and 4 ms beside them, at 125 MB/s: 1 MB; 65535 x 2^4 is the next window.
        self.assertEqual(shaping.window(plan, a, b), 65535 * 16)
        queue = shaping.queues(plan)["tor", "b"]  # from a and from c
        self.assertGreaterEqual(queue, 2 * 65535 * 16)

    def test_a_bucket_takes_the_largest_packet_that_a_host_sends(self):
        for rate in (1e5, 12.5e6, 125e6, 1.25e9):
            self.assertLess(shaping.largest_packet(rate), shaping.burst(rate))
            self.assertGreater(shaping.largest_packet(rate), shaping.MTU)

    def test_one_gpu_is_no_lab(self):
        with self.assertRaisesRegex(planning.TopologyError, "by-hand has 1 GPUs"):
            planning.make_plan(graph({"a": "gpu"}, []))


class Input(unittest.TestCase):
    def run_lab(self, *arguments):
        return subprocess.run([LAB, *arguments], capture_output=True, text=True, check=False)

    def test_a_topology_that_the_program_refuses_is_refused_with_its_words(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "bad.json"
            text = (ROOT / "topologies" / "lab" / "flat4-1g.json").read_text()
            file.write_text(text.replace('"1 Gb/s"', '"1 Gbit"').replace("flat4-1g", "bad"))
            done = self.run_lab(str(file))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("nic", done.stderr)
        self.assertIn("bad.json", done.stderr)

    def test_wrong_arguments_are_a_usage_error(self):
        for arguments in ([], ["--keep"], ["a.json", "true"], ["a.json", "--"]):
            with self.subTest(arguments):
                done = self.run_lab(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    unittest.main()
