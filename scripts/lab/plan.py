# SPDX-License-Identifier: Apache-2.0
"""Works out from a cluster's graph what a lab is made of; makes nothing.

The graph is what `stepcast topology show --format json` prints, so that the lab and the forecast
read one description. GPUs become hosts, everything else becomes a switch or a part of a link:

- A vertex that ends nowhere (a host bridge without a second PCIe switch) carries nothing: dropped.
- A vertex with two neighbours (a NIC between its GPU and a leaf) is a part of the link between
  them: that link has the lower capacity of each direction and the sum of the latencies.
- Every other vertex is a switch. For each host it knows one port, so cycles of the graph are no
  loops of the network.

Rates are bytes/s, latencies seconds, both per direction, as in the graph.
"""

import dataclasses
import heapq

MAX_HOSTS = 64  # a machine has long been full by then
# Which path a packet takes (docs/formats/cluster.md, "Paths"): NVLink where it alone joins two
# GPUs, then PCIe, then over a host bridge, then the network; the fewest of each.
PATH_ORDER = ("network", "host", "pcie", "nvlink")
RATES = {"B/s": 1.0, "GB/s": 1e9, "Gb/s": 1e9 / 8}
TIMES = {"s": 1.0, "us": 1e-6}


class TopologyError(Exception):
    """The topology cannot be made; the text names the part."""


@dataclasses.dataclass(frozen=True)
class Edge:
    """One direction between two namespaces."""

    rate: float
    latency: float
    cost: tuple  # links of each PATH_ORDER


@dataclasses.dataclass(frozen=True)
class Host:
    rank: int
    vertex: str

    @property
    def name(self):
        return f"rank{self.rank}"

    @property
    def address(self):
        return address_of(self.rank)

    @property
    def mac(self):
        return f"02:00:00:00:00:{self.rank + 1:02x}"  # locally administered


@dataclasses.dataclass
class Plan:
    title: str
    hosts: list
    switches: dict  # vertex -> name, in the graph's order
    edges: dict  # vertex -> {neighbour: Edge}
    next_hop: dict  # vertex -> {GPU vertex: neighbour}

    def name(self, vertex):
        for host in self.hosts:
            if host.vertex == vertex:
                return host.name
        return self.switches[vertex]

    def ports(self, vertex):
        """Neighbour -> interface, in the order in which the links were given."""
        prefix = "p" if vertex in self.switches else "eth"
        return {neighbour: f"{prefix}{i}" for i, neighbour in enumerate(self.edges[vertex])}

    def cables(self):
        """Each pair of neighbours once."""
        seen = set()
        for a, neighbours in self.edges.items():
            for b in neighbours:
                if (b, a) not in seen:
                    seen.add((a, b))
                    yield a, b

    def steps(self, a, b):
        """The directed edges from GPU `a` to GPU `b`, as pairs of vertices."""
        while a != b:
            following = self.next_hop[a][b]
            yield a, following
            a = following

    def path(self, a, b):
        return [self.edges[u][v] for u, v in self.steps(a, b)]


SUBNET = "10.77.0.0/24"  # inside the lab's own namespaces: it meets no network of the machine


def address_of(rank):
    return f"10.77.0.{rank + 1}"


def add_costs(a, b):
    return tuple(x + y for x, y in zip(a, b))


def quantity(text, units):
    number, unit = text.split()
    return float(number) * units[unit]


def step_between(one, other):
    """Names what joins two kinds of vertices, as src/cluster/irregular_cluster.cpp finds it."""
    ends = {one, other}
    if "nvswitch" in ends or ends == {"gpu"}:
        return "nvlink"
    if ends & {"leaf", "spine", "core"} or ends == {"nic"}:
        return "network"
    return "host" if "host" in ends else "pcie"


def read_edges(graph):
    kinds = {vertex["name"]: vertex["kind"] for vertex in graph["vertices"]}
    edges = {name: {} for name in kinds}
    for link in graph["links"]:
        ends = link.get("between") or [link["from"], link["to"]]
        step = step_between(kinds[ends[0]], kinds[ends[1]])
        cost = tuple(int(step == kind) for kind in PATH_ORDER)
        edge = Edge(quantity(link["capacity"], RATES), quantity(link.get("latency", "0 s"), TIMES),
                    cost)
        edges[ends[0]][ends[1]] = edge
        if "between" in link:
            edges[ends[1]][ends[0]] = edge
    return edges


def drop(edges, vertex):
    for neighbour in edges.pop(vertex):
        del edges[neighbour][vertex]


def join(first, second):
    return Edge(min(first.rate, second.rate), first.latency + second.latency,
                add_costs(first.cost, second.cost))


def collapse(edges, gpus):
    """Drops dead ends and makes chains one link, until neither is left."""
    changed = True
    while changed:
        changed = False
        for vertex in [name for name in edges if name not in gpus]:
            neighbours = list(edges[vertex])
            if len(neighbours) < 2:
                drop(edges, vertex)
                changed = True
            elif len(neighbours) == 2 and neighbours[1] not in edges[neighbours[0]]:
                a, b = neighbours
                there = join(edges[a][vertex], edges[vertex][b])
                back = join(edges[b][vertex], edges[vertex][a])
                # In the place of the link it replaces, so that ports keep the file's order.
                edges[a] = {b if at == vertex else at: there if at == vertex else edge
                            for at, edge in edges[a].items()}
                edges[b] = {a if at == vertex else at: back if at == vertex else edge
                            for at, edge in edges[b].items()}
                del edges[vertex]
                changed = True
    return edges


def next_hops(edges, gpus, target):
    """The neighbour towards `target` of every vertex; no path leads through another GPU."""
    index = gpus.index(target)
    best = {target: (0,) * len(PATH_ORDER)}
    queue = [(best[target], target)]
    while queue:
        cost, at = heapq.heappop(queue)
        if cost > best[at] or (at in gpus and at != target):
            continue
        for before in edges[at]:
            reached = add_costs(cost, edges[before][at].cost)
            if before not in best or reached < best[before]:
                best[before] = reached
                heapq.heappush(queue, (reached, before))
    out = {}
    for vertex in best:
        if vertex == target:
            continue
        equal = [after for after, edge in edges[vertex].items()
                 if after in best and (after == target or after not in gpus)
                 and add_costs(best[after], edge.cost) == best[vertex]]
        out[vertex] = equal[index % len(equal)]  # equal paths are dealt over the receivers
    return out


def make_plan(graph):
    """The Plan of a graph as `stepcast topology show --format json` prints it."""
    gpus = [vertex["name"] for vertex in graph["vertices"] if vertex["kind"] == "gpu"]
    if not 2 <= len(gpus) <= MAX_HOSTS:
        raise TopologyError(f"{graph['name']} has {len(gpus)} GPUs: a lab joins 2 to {MAX_HOSTS}")
    edges = collapse(read_edges(graph), set(gpus))
    switches = [name for name in edges if name not in gpus]
    next_hop = {vertex: {} for vertex in edges}
    for target in gpus:
        for vertex, neighbour in next_hops(edges, gpus, target).items():
            next_hop[vertex][target] = neighbour
    for a in gpus:
        missing = [b for b in gpus if b != a and b not in next_hop[a]]
        if missing:
            raise TopologyError(f"{graph['name']}: no path from {a} to {missing[0]}")
    return Plan(graph["name"], [Host(rank, vertex) for rank, vertex in enumerate(gpus)],
                {vertex: f"switch{i}" for i, vertex in enumerate(switches)}, edges, next_hop)


def time_text(seconds):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:g} ns" if seconds else "0"


def rate_text(bytes_per_s):
    bits = bytes_per_s * 8
    for unit, scale in (("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)):
        if bits >= scale:
            return f"{bits / scale:g} {unit}"
    return f"{bits:g} b/s"
