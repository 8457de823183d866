# SPDX-License-Identifier: Apache-2.0
"""Makes a plan real with iproute2, and takes it down again.

A lab has a number; its namespaces are called sclab<number>-<host or switch>, and nothing of it is
visible outside them. Switches and hosts know where everything is: fixed MAC addresses, fixed
neighbour tables, one fixed port per host in each switch, so nothing floods, nothing is learnt and
no ARP request disturbs a measurement.
"""

import os
import shutil
import signal
import subprocess
import time

import plan as planning
import shaping

NETNS_FOLDER = "/run/netns"
NETNS_FILES = "/etc/netns"  # `ip netns exec` puts these over /etc
PREFIX = "sclab"


class LabError(Exception):
    """Making the lab failed; the text has the command and what it said."""


def namespace(number, name):
    return f"{PREFIX}{number}-{name}"


def run(command, text=""):
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise LabError(f"{' '.join(command)}: {said or f'exit code {done.returncode}'}")
    return done.stdout


def batch(command, lines):
    text = "".join(line + "\n" for line in lines)
    if text:
        run([*command, "-batch", "-"], text)


def try_out(number):
    """Does once what the kernel must be able to do. Returns whether it has netem."""
    name = namespace(number, "probe")
    run(["ip", "netns", "add", name])
    batch(["ip", "-n", name], ["link add eth0 mtu 9000 type veth peer name eth1",
                               "link add bridge0 type bridge"])
    tbf = "root tbf rate 1mbit burst 20000 limit 20000"
    run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", *tbf.split()])
    run(["ip", "netns", "exec", name, "unshare", "--uts", "true"])
    netem = ["tc", "-n", name, "qdisc", "add", "dev", "eth1", "root", "netem", "delay", "1ms"]
    has_netem = subprocess.run(netem, capture_output=True, check=False).returncode == 0
    run(["ip", "netns", "del", name])
    return has_netem


def write_files(number, plan):
    """/etc of the hosts: names without a name server."""
    names = "127.0.0.1 localhost\n"
    names += "".join(f"{host.address} {host.name}\n" for host in plan.hosts)
    for host in plan.hosts:
        folder = os.path.join(NETNS_FILES, namespace(number, host.name))
        os.makedirs(folder)
        for file, text in (("hosts", names), ("resolv.conf", "")):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(text)


def host_commands(plan, host):
    ports = plan.ports(host.vertex)
    yield "link set lo up"
    for neighbour, port in ports.items():
        rate = plan.edges[host.vertex][neighbour].rate
        yield f"link set {port} address {host.mac} gso_max_size {shaping.largest_packet(rate)}"
        yield f"link set {port} up"
    first = next(iter(ports.values()))
    yield f"addr add {host.address}/24 dev {first}"
    for other in plan.hosts:
        if other is host:
            continue
        port = ports[plan.next_hop[host.vertex][other.vertex]]
        offered = shaping.window(plan, other, host)
        yield f"route add {other.address}/32 dev {port} src {host.address} window {offered}"
        yield f"neigh add {other.address} lladdr {other.mac} dev {port} nud permanent"


def switch_commands(plan, vertex):
    yield f"link add bridge0 mtu {shaping.MTU} type bridge stp_state 0 mcast_snooping 0"
    for port in plan.ports(vertex).values():
        yield f"link set {port} master bridge0"
        yield f"link set {port} up"
    yield "link set bridge0 up"


def bridge_commands(plan, vertex):
    ports = plan.ports(vertex)
    for port in ports.values():
        yield f"link set dev {port} learning off flood off mcast_flood off bcast_flood off"
    for host in plan.hosts:
        port = ports[plan.next_hop[vertex][host.vertex]]
        yield f"fdb add {host.mac} dev {port} master static"


def set_sysctls(name, values):
    script = 'cd /proc/sys/net && while read -r file value; do [ ! -e "$file" ] || ' \
             'printf "%s" "$value" >"$file" || exit 1; done'
    lines = "".join(f"{file} {value}\n" for file, value in values.items())
    run(["ip", "netns", "exec", name, "sh", "-c", script], lines)


def make(number, plan, netem):
    names = {vertex: namespace(number, plan.name(vertex)) for vertex in plan.edges}
    batch(["ip"], [f"netns add {name}" for name in names.values()])
    batch(["ip"], [
        f"link add {plan.ports(a)[b]} netns {names[a]} mtu {shaping.MTU} type veth "
        f"peer name {plan.ports(b)[a]} netns {names[b]} mtu {shaping.MTU}"
        for a, b in plan.cables()])
    no_ipv6 = {file: value for file, value in shaping.sysctls().items() if "ipv6" in file}
    for vertex in plan.switches:
        set_sysctls(names[vertex], no_ipv6)
        batch(["ip", "-n", names[vertex]], switch_commands(plan, vertex))
        batch(["bridge", "-n", names[vertex]], bridge_commands(plan, vertex))
    for host in plan.hosts:
        set_sysctls(names[host.vertex], shaping.sysctls())
        batch(["ip", "-n", names[host.vertex]], host_commands(plan, host))
    limits = shaping.queues(plan)
    for vertex, name in names.items():
        batch(["tc", "-n", name], shaping.tc_commands(plan, vertex, limits, netem))


def all_namespaces(number=None):
    try:
        names = os.listdir(NETNS_FOLDER)
    except FileNotFoundError:
        return []
    start = PREFIX if number is None else namespace(number, "")
    return sorted(name for name in names if name.startswith(start))


def processes(names):
    inodes = {os.stat(os.path.join(NETNS_FOLDER, name)).st_ino for name in names}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino in inodes:
                found.append(int(pid))
        except OSError:
            pass  # it has ended
    return found


def end_processes(names):
    """Asks every process of these namespaces to end, then makes it."""
    started = time.monotonic()
    asked = set()
    while pids := processes(names):
        insist = time.monotonic() - started > 2
        for pid in pids:
            if insist or pid not in asked:
                asked.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL if insist else signal.SIGTERM)
                except ProcessLookupError:
                    pass
        if time.monotonic() - started > 20:
            raise LabError(f"processes {pids} do not end")
        time.sleep(0.02)


def take_down(number):
    """Processes and namespaces of lab `number`, however far it got."""
    names = all_namespaces(number)
    end_processes(names)
    for name in names:
        done = subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        if done.returncode != 0 and os.path.exists(os.path.join(NETNS_FOLDER, name)):
            os.unlink(os.path.join(NETNS_FOLDER, name))  # made, but nothing mounted on it yet


def remove_files(number):
    """Removes what write_files wrote. Labs that begin or end do one of the two at a time."""
    if not os.path.isdir(NETNS_FILES):
        return
    for name in os.listdir(NETNS_FILES):
        if name.startswith(namespace(number, "")):
            shutil.rmtree(os.path.join(NETNS_FILES, name))
    if not os.listdir(NETNS_FILES):
        os.rmdir(NETNS_FILES)


def open_mpi_environment(number, plan, folder):
    """Makes Open MPI 4.1 start rank i on host i, over TCP alone."""
    mca = {
        "orte_default_hostfile": os.path.join(folder, "hostfile"),
        "orte_tmpdir_base": os.path.join(folder, "tmp"),
        "plm": "rsh",
        "plm_rsh_agent": os.path.join(folder, "enter"),
        "plm_rsh_no_tree_spawn": "1",
        "pml": "ob1",
        "btl": "tcp,self",  # one machine: shared memory would pass the links by
        # The default offers "put", whose requests wait behind the data that a socket is sending:
        # two ranks that send to each other then take turns, at half the rate (docs/lab.md).
        "btl_tcp_flags": "send",
        "btl_tcp_if_include": planning.SUBNET,
        "oob_tcp_if_include": planning.SUBNET,
        "hwloc_base_binding_policy": "none",  # each host believes the cores are its own
        "rmaps_base_mapping_policy": "slot",
        "rmaps_base_oversubscribe": "1",
        "mpi_yield_when_idle": "1",  # a waiting rank must not hold a core that another needs
    }
    environment = {f"OMPI_MCA_{key}": value for key, value in mca.items()}
    environment.update({
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "STEPCAST_LAB": f"{PREFIX}{number}",
        "STEPCAST_LAB_HOSTS": ",".join(host.name for host in plan.hosts),
        "STEPCAST_LAB_ENTER": os.path.join(folder, "enter"),
    })
    return environment
