# SPDX-License-Identifier: Apache-2.0
"""Real labs: ranks on hosts of their own, rates, and that nothing of a lab outlives it.

Exits 77 where scripts/lab.sh does.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = str(ROOT / "scripts" / "lab.sh")
TOPOLOGIES = ROOT / "topologies" / "lab"
GOODPUT = [sys.executable, "-B", str(ROOT / "tests" / "lab" / "goodput.py")]
OWN = os.getpid()  # tests of another build may run at the same time
LIMIT = 120  # seconds until a command that hangs is a failure


def lab(topology, *command, **options):
    path = TOPOLOGIES / f"{topology}.json"
    return subprocess.run([LAB, str(path), "--", *command], capture_output=True, text=True,
                          timeout=LIMIT, check=False, **options)


def remains(name):
    """Namespaces, files and state of the lab called `name` (sclab7)."""
    found = []
    for folder in ("/run/netns", "/etc/netns"):
        if os.path.isdir(folder):
            found += [f"{folder}/{entry}" for entry in os.listdir(folder)
                      if entry.startswith(f"{name}-")]
    state = f"/run/stepcast-lab/{name.removeprefix('sclab')}"
    return found + ([state] if os.path.exists(state) else [])


def processes_with(words):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if words.encode() in line.split(b"\0"):
            found.append(int(pid))
    return found


def has_netem():
    """Whether this kernel delays packets, asked without the lab."""
    name = f"stepcast-probe-{OWN}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "add", "p0", "type", "veth", "peer", "name",
                        "p1"], check=True)
        return subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "p0", "root", "netem",
                               "delay", "1ms"], capture_output=True, check=False).returncode == 0
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


class Ranks(unittest.TestCase):
    def test_rank_i_is_on_host_i(self):
        for topology, ranks in (("nodes2x2", 4), ("flat8-300m", 8)):
            with self.subTest(topology):
                done = lab(topology, "mpirun", "-n", str(ranks), "sh", "-c",
                           "echo $OMPI_COMM_WORLD_RANK $(hostname)")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(done.stdout.splitlines()),
                                 [f"{rank} rank{rank}" for rank in range(ranks)])

    def test_hosts_know_each_other_by_name(self):
        done = lab("flat4-1g", "getent", "hosts", "rank3")
        self.assertEqual(done.stdout.split(), ["10.77.0.4", "rank3"], done.stderr)

    def test_the_command_runs_where_it_was_called(self):
        done = lab("flat4-1g", "pwd", cwd="/usr")
        self.assertEqual(done.stdout, "/usr\n", done.stderr)


class Rates(unittest.TestCase):
    """The rate of a link is a bound that the kernel enforces. Headers take 0.7 % of it; what a
    receiver reads late and then at once moves a sample by a few per cent; a machine busy with
    other work may not fill the link. Hence 0.6 to 1.2 of the rate."""

    def goodputs(self, topology, *pairs):
        done = lab(topology, *GOODPUT, "1.5", *pairs)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows], list(pairs))
        return [float(row[1]) * 8 for row in rows]

    def assert_reaches(self, goodput, rate):
        self.assertGreater(goodput, 0.6 * rate)
        self.assertLess(goodput, 1.2 * rate)

    def test_each_direction_has_the_rate(self):
        for goodput in self.goodputs("flat4-100m", "0-1", "1-0"):
            self.assert_reaches(goodput, 100e6)

    def test_flows_share_the_uplink_of_a_node(self):
        both = self.goodputs("nodes2x2", "0-2", "1-3")
        self.assert_reaches(sum(both), 200e6)
        self.assertGreater(min(both), 0.25 * 200e6)

    def test_a_node_is_faster_inside_than_outside(self):
        inside, outside = self.goodputs("nodes2x2", "0-1", "2-0")
        self.assertGreater(inside, 1.5 * 200e6)  # 1 Gb/s, on however busy a machine
        self.assertLess(outside, 1.2 * 200e6)

    def test_cables_between_hosts_are_used_beside_a_switch(self):
        """a and b also have a cable of their own, which c's traffic must not take."""
        description = {
            "stepcast_cluster": 1, "name": "cabled", "accelerator": "cpu", "network": "tcp",
            "vertices": [{"name": "tor", "kind": "leaf"}],
            "links": [{"between": ["a", "b"], "capacity": "400 Mb/s"}]}
        for node, name in enumerate("abc"):
            description["vertices"] += [{"name": name, "kind": "gpu", "node": node // 2},
                                        {"name": f"n{name}", "kind": "nic", "node": node // 2}]
            description["links"] += [{"between": [name, f"n{name}"], "capacity": "1 Gb/s"},
                                     {"between": [f"n{name}", "tor"], "capacity": "100 Mb/s"}]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "cabled.json"
            file.write_text(json.dumps(description))
            done = subprocess.run([LAB, str(file), "--", *GOODPUT, "1.5", "0-1", "2-0"], text=True,
                                  capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        cable, switched = (float(line.split()[1]) * 8 for line in done.stdout.splitlines())
        self.assert_reaches(cable, 400e6)
        self.assert_reaches(switched, 100e6)

    def test_a_latency_above_the_kernels_own_is_added(self):
        text = (TOPOLOGIES / "flat4-1g.json").read_text()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "slow.json"
            file.write_text(re.sub('"network_latency": "[^"]*"', '"network_latency": "20 ms"',
                                   text.replace("flat4-1g", "slow")))
            done = subprocess.run([LAB, str(file), "--", *GOODPUT, "round-trip", "0-1"], text=True,
                                  capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        took = float(done.stdout.split()[0])
        if has_netem():
            self.assertNotIn("no netem", done.stderr)
            self.assertGreaterEqual(took, 2 * 20e-3)
        else:  # without it latencies stay as they are, and the lab says so
            self.assertIn("no netem", done.stderr)
            self.assertGreater(took, 0)


class Teardown(unittest.TestCase):
    """`sleep` with a number of its own is a process that would outlive the lab."""

    def assert_gone(self, name, marker=None):
        self.assertRegex(name, r"^sclab\d+$")
        self.assertEqual(remains(name), [])
        if marker:
            self.assertEqual(processes_with(marker), [])

    def start(self, marker, command):
        """A lab whose command has started; with the lab's name."""
        script = f'sleep {marker} & echo "$STEPCAST_LAB"; {command}'
        topology = str(TOPOLOGIES / "nodes2x2.json")
        process = subprocess.Popen([LAB, topology, "--", "sh", "-c", script], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def test_after_success_although_a_process_stays_behind(self):
        done = lab("flat4-1g", "sh", "-c", f'sleep 86401.{OWN} & echo "$STEPCAST_LAB"')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_gone(done.stdout.strip(), f"86401.{OWN}")

    def test_the_exit_code_is_the_commands(self):
        done = lab("flat4-1g", "sh", "-c", 'echo "$STEPCAST_LAB"; exit 7')
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assert_gone(done.stdout.strip())

    def test_of_a_command_that_is_killed(self):
        done = lab("flat4-1g", "sh", "-c", 'echo "$STEPCAST_LAB"; kill -9 $$')
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        self.assert_gone(done.stdout.strip())

    def test_after_an_interrupt_and_after_a_termination(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                process, name = self.start(f"86402.{OWN}",
                                           f"mpirun -n 4 sleep 86403.{OWN}")
                self.assertNotEqual(remains(name), [])
                process.send_signal(number)
                self.assertEqual(process.wait(LIMIT), 128 + number)
                self.assert_gone(name, f"86402.{OWN}")
                self.assertEqual(processes_with(f"86403.{OWN}"), [])

    def test_of_one_half_made(self):
        real = subprocess.run(["sh", "-c", "command -v tc"], capture_output=True, text=True,
                              check=True).stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "tc"
            log = pathlib.Path(folder) / "log"
            # The kernel's abilities are tried first, then the namespaces one by one.
            fake.write_text(f'#!/bin/sh\necho "$2" >>{log}\n'
                            f'[ "$(grep -vc probe {log})" -lt 3 ] && exec {real} "$@"\n'
                            'echo "no room" >&2\nexit 1\n')
            fake.chmod(0o755)
            path = f"{folder}:{os.environ['PATH']}"
            done = lab("nodes2x2", "true", env={**os.environ, "PATH": path})
            names = log.read_text().split()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no room", done.stderr)
        self.assert_gone(names[-1].split("-")[0])

    def test_of_a_killed_lab_is_cleaned_and_a_living_one_stays(self):
        living, living_name = self.start(f"86404.{OWN}", "wait")
        killed, killed_name = self.start(f"86405.{OWN}", "wait")
        self.assertNotEqual(living_name, killed_name)
        killed.kill()
        killed.wait(LIMIT)
        self.assertNotEqual(remains(killed_name), [])
        done = subprocess.run([LAB, "--clean"], capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_gone(killed_name, f"86405.{OWN}")
        self.assertNotEqual(remains(living_name), [])
        living.terminate()
        living.wait(LIMIT)
        self.assert_gone(living_name, f"86404.{OWN}")

    def test_of_one_leaves_another_at_work(self):
        with tempfile.TemporaryDirectory() as folder:
            gate = pathlib.Path(folder) / "gate"
            os.mkfifo(gate)
            first, first_name = self.start(f"86406.{OWN}",
                                           f"read line <{gate}; mpirun -n 4 hostname")
            done = lab("nodes2x2", "sh", "-c", 'echo "$STEPCAST_LAB"; mpirun -n 4 hostname')
            gate.write_text("go\n")
            out, error = first.communicate(timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        second_name, *hosts = done.stdout.splitlines()
        self.assertNotEqual(first_name, second_name)
        self.assertEqual(sorted(hosts), ["rank0", "rank1", "rank2", "rank3"])
        self.assertEqual(first.returncode, 0, error)
        self.assertEqual(sorted(out.splitlines()), ["rank0", "rank1", "rank2", "rank3"])
        self.assert_gone(first_name)
        self.assert_gone(second_name)


class Missing(unittest.TestCase):
    def test_a_missing_program_is_a_skip_with_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in ("bash", "dirname", "ip", "python3"):
                found = subprocess.run(["sh", "-c", f"command -v {program}"], capture_output=True,
                                       text=True, check=True).stdout.strip()
                os.symlink(found, f"{folder}/{program}")
            done = lab("flat4-1g", "true", env={"PATH": folder})
        self.assertEqual(done.returncode, 77)
        self.assertEqual(done.stderr, "lab: skipped, tc is missing\n")


def main():
    tried = lab("nodes2x2", "true")
    if tried.returncode == 77:
        print(tried.stderr, end="")
        return 77
    result = unittest.main(exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
