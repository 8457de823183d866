# SPDX-License-Identifier: Apache-2.0
"""Prints a lab, runs a command in one, or removes what killed labs left: see scripts/lab.sh."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys

import namespaces
import plan as planning
import shaping

STATE_FOLDER = "/run/stepcast-lab"  # one folder per lab, locked while its maker lives
SKIPPED = 77
INPUT_ERROR = 2
HERE = os.path.dirname(os.path.abspath(__file__))


class Interrupted(Exception):
    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


class Missing(Exception):
    """The machine cannot hold a lab."""


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def read_graph(stepcast, topology):
    command = [stepcast, "topology", "show", topology, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise planning.TopologyError(f"{topology} is no cluster that stepcast reads")
    return json.loads(done.stdout)


def print_plan(plan):
    print(f"{plan.title}: hosts {len(plan.hosts)}, switches {len(plan.switches)}, "
          f"links {len(list(plan.cables()))}")
    print("\nrank  host      address       gpu")
    for host in plan.hosts:
        print(f"{host.rank:4}  {host.name:8}  {host.address:12}  {host.vertex}")
    if plan.switches:
        print("\nswitch     of")
        for vertex, name in plan.switches.items():
            print(f"{name:9}  {vertex}")
    print("\nfrom       to         rate        latency   delay added  burst     queue")
    queues = shaping.queues(plan)
    for a, neighbours in plan.edges.items():
        for b, edge in neighbours.items():
            print(f"{plan.name(a):9}  {plan.name(b):9}  {planning.rate_text(edge.rate):10}  "
                  f"{planning.time_text(edge.latency):8}  "
                  f"{planning.time_text(shaping.delay(edge)):11}  "
                  f"{shaping.burst(edge.rate):<8}  {queues[a, b]}")
    print("\nRates are of one direction; burst and queue in bytes.")


class StateLock:
    """Held while a lab gets or loses its number, so that --clean never meets half of one."""

    def __enter__(self):
        os.makedirs(STATE_FOLDER, exist_ok=True)
        self.file = open(os.path.join(STATE_FOLDER, ".lock"), "w", encoding="utf-8")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class Lab:
    """A numbered lab. Its lock ends with this process, however that ends."""

    def __init__(self):
        with StateLock():
            self.number = 1
            taken = set(os.listdir(STATE_FOLDER))
            taken |= {name.split("-")[0].removeprefix(namespaces.PREFIX)
                      for name in namespaces.all_namespaces()}
            while str(self.number) in taken:
                self.number += 1
            self.folder = os.path.join(STATE_FOLDER, str(self.number))
            os.makedirs(os.path.join(self.folder, "tmp"))
            self.lock = open(os.path.join(self.folder, "lock"), "w", encoding="utf-8")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.command = None
        self.may_interrupt = True
        self.interrupted = None

    def on_signal(self, number, _):
        self.interrupted = number
        if self.may_interrupt:
            self.may_interrupt = False  # once is enough
            raise Interrupted(number)

    def make(self, plan):
        try:
            netem = namespaces.try_out(self.number)
        except namespaces.LabError as error:
            raise Missing(f"this machine cannot make network namespaces: {error}") from error
        late = [planning.time_text(edge.latency) for edges in plan.edges.values()
                for edge in edges.values() if shaping.delay(edge)]
        if late and not netem:
            say(f"this kernel has no netem: the latency of {len(late)} links is not added "
                f"(up to {max(late)})")
        with open(os.path.join(self.folder, "hostfile"), "w", encoding="utf-8") as out:
            out.write("".join(f"{host.name} slots=1\n" for host in plan.hosts))
        os.symlink(os.path.join(HERE, "enter.sh"), os.path.join(self.folder, "enter"))
        with StateLock():
            namespaces.write_files(self.number, plan)
        namespaces.make(self.number, plan, netem)

    def run(self, plan, command):
        environment = dict(os.environ)
        environment.update(namespaces.open_mpi_environment(self.number, plan, self.folder))
        first = plan.hosts[0].name
        inner = 'echo "$1" >/proc/sys/kernel/hostname && shift && exec "$@"'
        # A command that has started must be known before a signal may end us.
        self.may_interrupt = False
        self.command = subprocess.Popen(  # pylint: disable=consider-using-with
            ["ip", "netns", "exec", namespaces.namespace(self.number, first), "unshare", "--uts",
             "sh", "-c", inner, "sh", first, *command], env=environment)
        if self.interrupted:
            raise Interrupted(self.interrupted)
        self.may_interrupt = True
        code = self.command.wait()
        return code if code >= 0 else 128 - code

    def take_down(self):
        self.end_command()
        namespaces.take_down(self.number)
        with StateLock():
            namespaces.remove_files(self.number)
            shutil.rmtree(self.folder)
        self.lock.close()

    def end_command(self):
        """Its first process may not have reached the namespace in which the others are found."""
        if self.command is None or self.command.poll() is not None:
            return
        self.command.terminate()
        try:
            self.command.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self.command.kill()
            self.command.wait()


def caught_signals():
    """Lists signals that end a lab in order; one that our parent had ignored stays so (nohup)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            yield number


def run_lab(plan, command):
    caught = list(caught_signals())
    signal.pthread_sigmask(signal.SIG_BLOCK, caught)  # until there is something to take down
    lab = Lab()
    try:
        for number in caught:
            signal.signal(number, lab.on_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, caught)
        lab.make(plan)
        return lab.run(plan, command)
    except Interrupted as interrupted:
        say(f"ended by {interrupted}")
        return 128 + interrupted.number
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_IGN)
        lab.take_down()


def clean():
    removed = 0
    with StateLock():
        for name in sorted(filter(str.isdigit, os.listdir(STATE_FOLDER))):
            folder = os.path.join(STATE_FOLDER, name)
            with open(os.path.join(folder, "lock"), "a", encoding="utf-8") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # its maker lives
                namespaces.take_down(int(name))
                namespaces.remove_files(int(name))
                shutil.rmtree(folder)
                removed += 1
    print(f"lab: {removed} left-over labs removed")
    return 0


def main(arguments):
    stepcast, mode, topology, *command = arguments
    try:
        if mode == "clean":
            return clean()
        plan = planning.make_plan(read_graph(stepcast, topology))
        if mode == "print":
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
            print_plan(plan)
            return 0
        return run_lab(plan, command)
    except planning.TopologyError as error:
        say(error)
        return INPUT_ERROR
    except Missing as error:
        say(error)
        return SKIPPED
    except (namespaces.LabError, OSError) as error:
        say(error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
