// SPDX-License-Identifier: Apache-2.0
#include "replay/w1_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "graphs/graph_groups.h"

namespace stepcast::testing {
namespace {

using Kind = W1Operation::Kind;

class RankOperations {
 public:
  RankOperations(const W1& spec, std::int32_t rank)
      : spec_(spec),
        rank_(rank),
        stage_(rank / W1::kTp / spec.dp()),
        layers_(spec.layers / W1::kPp) {}

  std::vector<W1Operation> list() {
    const std::int32_t warm_up = std::min(W1::kPp - stage_ - 1, spec_.micro_batches);
    for (std::int32_t m = 0; m < spec_.micro_batches + warm_up; ++m) {
      if (m < spec_.micro_batches) forward(m);
      if (m >= warm_up) backward(m - warm_up);
    }
    if (spec_.dp() > 1) {
      for (std::int32_t i = 0; i < W1::kDataBuckets; ++i) out_.push_back({Kind::kDataReduce});
    }
    return std::move(out_);
  }

 private:
  std::int32_t neighbour(std::int32_t stages) const {
    return rank_ + stages * spec_.dp() * W1::kTp;
  }
  void compute_and_reduce(double us) {
    out_.push_back({Kind::kCompute, us});
    out_.push_back({Kind::kTensorReduce});
  }
  void forward(std::int32_t m) {
    if (stage_ > 0) out_.push_back({Kind::kReceive, 0, neighbour(-1), 2 * m});
    for (std::int32_t i = 0; i < layers_; ++i) {
      compute_and_reduce(745);
      compute_and_reduce(1374);
    }
    if (stage_ + 1 < W1::kPp) out_.push_back({Kind::kSend, 0, neighbour(1), 2 * m});
  }
  void backward(std::int32_t m) {
    if (stage_ + 1 < W1::kPp) out_.push_back({Kind::kReceive, 0, neighbour(1), 2 * m + 1});
    for (std::int32_t i = 0; i < layers_; ++i) {
      compute_and_reduce(2749);
      compute_and_reduce(1489);
    }
    if (stage_ > 0) out_.push_back({Kind::kSend, 0, neighbour(-1), 2 * m + 1});
  }

  const W1& spec_;
  std::int32_t rank_, stage_, layers_;
  std::vector<W1Operation> out_;
};

std::int64_t bytes_of(Kind kind) {
  return kind == Kind::kDataReduce ? W1::kBucket : W1::kActivations;
}

// A ring of n ranks: 2(n - 1) rounds of an n-th each.
double ring_latency(Kind kind, std::size_t n) {
  const double rounds = 2 * (static_cast<double>(n) - 1);
  return rounds * (kind == Kind::kTensorReduce ? W1::kNearLatency : W1::kFarLatency);
}
double ring_rate(Kind kind, std::size_t n) {
  const auto ranks = static_cast<double>(n);
  return (kind == Kind::kTensorReduce ? W1::kNear : W1::kFar) * ranks / (2 * (ranks - 1));
}

std::int32_t first_of_group(const W1& spec, std::int32_t rank, Kind collective) {
  const std::int32_t tp = rank % W1::kTp;
  if (collective == Kind::kTensorReduce) return rank - tp;
  return rank / W1::kTp / spec.dp() * spec.dp() * W1::kTp + tp;
}

struct HashOfThree {
  std::size_t operator()(const std::array<std::int32_t, 3>& of) const {
    std::size_t out = 0;
    for (const std::int32_t one : of)
      out = out * 0x9E3779B97F4A7C15U + static_cast<std::size_t>(one);
    return out ^ (out >> 32);
  }
};

class EngineBuilder {
 public:
  explicit EngineBuilder(const W1& spec) : spec_(spec) {}

  Result<sim::Replay> replay() {
    for (std::int32_t r = 0; r < spec_.ranks; ++r) {
      compute_.push_back(work_.add_stream());
      out_.push_back(work_.add_resource(W1::kFar));
      in_.push_back(work_.add_resource(W1::kFar));
    }
    for (std::int32_t r = 0; r < spec_.ranks; ++r) add_rank(r);
    for (const auto& [send, receive] : to_depend_) {
      work_.depend(messages_.at(send), receive.first, receive.second);
    }
    return sim::replay(work_);
  }

 private:
  using Channel = std::array<std::int32_t, 3>;  // from, to, tag

  void add_rank(std::int32_t rank) {
    sim::TaskId last;
    std::vector<Channel> received;
    std::array<std::int32_t, 2> issued{};
    for (const W1Operation& one : operations_of(spec_, rank)) {
      std::pair<sim::TaskId, std::int32_t> task;
      switch (one.kind) {
        case Kind::kSend:
          add_message({rank, one.peer, one.tag}, last);
          continue;
        case Kind::kReceive:
          received.push_back({one.peer, rank, one.tag});
          continue;
        case Kind::kCompute:
          task = {add_compute(rank, one.us), 0};
          break;
        default:
          task = meet(rank, one.kind, issued[one.kind == Kind::kDataReduce ? 1 : 0]++);
      }
      for (const Channel& channel : received) to_depend_.push_back({channel, task});
      received.clear();
      last = task.first;
    }
  }

  sim::TaskId add_compute(std::int32_t rank, double us) {
    const sim::MemberSpec member{compute_[static_cast<std::size_t>(rank)], {}, {}, {}};
    sim::TaskSpec spec;
    spec.members = {&member, 1};
    spec.latency = sim::duration(Seconds(us * 1e-6));
    return work_.add_task(spec);
  }

  void add_message(const Channel& channel, sim::TaskId after) {
    const sim::MemberSpec member{work_.add_stream(), {}, {}, {}};
    sim::TaskSpec spec;
    spec.members = {&member, 1};
    spec.latency = sim::duration(Seconds(W1::kFarLatency));
    spec.work = static_cast<double>(W1::kActivations);
    spec.rate_bound = W1::kFar;
    const std::array uses{sim::Use{out_[static_cast<std::size_t>(channel[0])], 1},
                          sim::Use{in_[static_cast<std::size_t>(channel[1])], 1}};
    spec.uses = uses;
    messages_[channel] = work_.add_task(spec);
    work_.depend(after, messages_[channel]);
  }

  std::pair<sim::TaskId, std::int32_t> meet(std::int32_t rank, Kind kind, std::int32_t place) {
    const std::int32_t first = first_of_group(spec_, rank, kind);
    auto& [task, placed] = meetings_[{static_cast<std::int32_t>(kind), first, place}];
    if (!task.valid()) {
      const std::vector<std::int32_t> group = group_of(spec_, rank, kind);
      const std::vector<sim::MemberSpec> seats(group.size());
      sim::TaskSpec spec;
      spec.members = seats;
      spec.latency = sim::duration(Seconds(ring_latency(kind, group.size())));
      spec.work = static_cast<double>(bytes_of(kind));
      spec.rate_bound = ring_rate(kind, group.size());
      std::vector<sim::Use> uses;  // of the ranks' links to the others, full at the ring's rate
      if (kind == Kind::kDataReduce) {
        for (const std::int32_t one : group) {
          uses.push_back({out_[static_cast<std::size_t>(one)], W1::kFar / spec.rate_bound});
          uses.push_back({in_[static_cast<std::size_t>(one)], W1::kFar / spec.rate_bound});
        }
      }
      spec.uses = uses;
      task = work_.add_task(spec);
    }
    work_.place(task, placed, {compute_[static_cast<std::size_t>(rank)], {}, {}, {}});
    return {task, placed++};
  }

  const W1& spec_;
  sim::Workload work_;
  std::vector<sim::StreamId> compute_;
  std::vector<sim::ResourceId> out_, in_;  // by rank: its link to other groups of tp ranks
  std::unordered_map<Channel, sim::TaskId, HashOfThree> messages_;
  std::unordered_map<Channel, std::pair<sim::TaskId, std::int32_t>, HashOfThree> meetings_;
  std::vector<std::pair<Channel, std::pair<sim::TaskId, std::int32_t>>> to_depend_;
};

}  // namespace

std::vector<W1Operation> operations_of(const W1& spec, std::int32_t rank) {
  return RankOperations(spec, rank).list();
}

std::vector<std::int32_t> group_of(const W1& spec, std::int32_t rank, Kind collective) {
  const bool is_tensor = collective == Kind::kTensorReduce;
  const std::int32_t first = first_of_group(spec, rank, collective);
  std::vector<std::int32_t> out(static_cast<std::size_t>(is_tensor ? W1::kTp : spec.dp()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = first + static_cast<std::int32_t>(i) * (is_tensor ? 1 : W1::kTp);
  }
  return out;
}

Result<sim::Replay> replay_on_engine(const W1& spec) { return EngineBuilder(spec).replay(); }

ExecutionGraph graph_of(const W1& spec) {
  ExecutionGraph graph;
  graph.ranks.resize(static_cast<std::size_t>(spec.ranks));
  GroupTable groups(graph.groups);
  for (std::int32_t r = 0; r < spec.ranks; ++r) {
    RankGraph& rank = graph.ranks[static_cast<std::size_t>(r)];
    std::int32_t last = kNowhere;
    std::vector<std::int32_t> received;
    for (const W1Operation& one : operations_of(spec, r)) {
      GraphNode node;
      node.id = rank.nodes.size();
      node.first_dependency = static_cast<std::int32_t>(rank.dependencies.size());
      const auto place = static_cast<std::int32_t>(rank.nodes.size());
      const bool receives = one.kind == Kind::kReceive;
      if (one.kind == Kind::kSend || receives) {
        node.kind = receives ? NodeKind::kReceive : NodeKind::kSend;
        node.peer = one.peer;
        node.tag = one.tag;
        node.bytes = static_cast<double>(W1::kActivations);
      } else if (one.kind == Kind::kCompute) {
        node.kind = NodeKind::kCompute;
        node.duration = Seconds(one.us * 1e-6);
      } else {
        node.kind = NodeKind::kCollective;
        node.bytes = static_cast<double>(bytes_of(one.kind));
        node.group = groups.number_of(group_of(spec, r, one.kind));
      }
      if (receives) {
        received.push_back(place);
      } else {
        if (last != kNowhere) rank.dependencies.push_back({last});
        if (one.kind != Kind::kSend) {
          for (const std::int32_t receive : received) rank.dependencies.push_back({receive});
          received.clear();
          last = place;
        }
      }
      node.dependencies =
          static_cast<std::int32_t>(rank.dependencies.size()) - node.first_dependency;
      rank.nodes.push_back(node);
    }
  }
  return graph;
}

std::string goal_text(const W1& spec) {
  fmt::memory_buffer out;
  const auto write = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  write("num_ranks {}\n", spec.ranks);
  for (std::int32_t r = 0; r < spec.ranks; ++r) {
    write("rank {} {{\n", r);
    std::vector<int> last, received;  // labels
    int label = 0;
    const auto require = [&](int after, const std::vector<int>& before) {
      for (const int one : before) write("l{} requires l{}\n", after, one);
    };
    for (const W1Operation& one : operations_of(spec, r)) {
      if (one.kind == Kind::kReceive) {
        write("l{}: recv {}b from {} tag {}\n", ++label, W1::kActivations, one.peer, one.tag);
        received.push_back(label);
      } else if (one.kind == Kind::kSend) {
        write("l{}: send {}b to {} tag {}\n", ++label, W1::kActivations, one.peer, one.tag);
        require(label, last);
      } else if (one.kind == Kind::kCompute) {
        write("l{}: calc {:.0f}\n", ++label, one.us * 1e3);
        require(label, last);
        require(label, received);
        received.clear();
        last = {label};
      } else {
        const auto group = group_of(spec, r, one.kind);
        const std::size_t n = group.size();
        const auto own = static_cast<std::size_t>(std::ranges::find(group, r) - group.begin());
        const int tag = one.kind == Kind::kDataReduce ? 1'000'001 : 1'000'000;
        for (std::size_t round = 0; round < 2 * (n - 1); ++round) {
          const std::int64_t bytes = bytes_of(one.kind) / static_cast<std::int64_t>(n);
          write("l{}: send {}b to {} tag {}\n", label + 1, bytes, group[(own + 1) % n], tag);
          write("l{}: recv {}b from {} tag {}\n", label + 2, bytes, group[(own + n - 1) % n], tag);
          require(label + 1, last);
          require(label + 2, last);
          last = {label + 1, label + 2};
          label += 2;
        }
      }
    }
    write("}}\n");
  }
  return fmt::to_string(out);
}

}  // namespace stepcast::testing
