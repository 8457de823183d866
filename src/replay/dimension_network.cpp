// SPDX-License-Identifier: Apache-2.0
#include "replay/dimension_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace stepcast {
namespace {

// A collective's part in one dimension, of all its chunks together.
struct RingPhase {
  double steps = 0;    // messages one after the other
  double traffic = 0;  // bytes that leave each rank
  double added = 0;    // bytes that each rank adds to its own
  double links = 1;    // that it sends over at once
};

bool adds_up(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

double log2_of(double n) { return std::ceil(std::log2(n)); }

class DimensionNetwork : public GraphNetwork {
 public:
  DimensionNetwork(DimensionFile file, SystemSettings system)
      : file_(std::move(file)), system_(std::move(system)) {}

  std::int64_t ranks() const override { return file_.ranks(); }
  std::string name() const override { return file_.name; }

  void add_resources(sim::Workload& workload) override {
    for (const NetworkDimension& dimension : file_.dimensions) {
      const double links = links_of(dimension);
      for (std::int64_t rank = 0; rank < ranks(); ++rank) {
        out_.push_back(workload.add_resource(dimension.bandwidth.value() * links));
        in_.push_back(workload.add_resource(dimension.bandwidth.value() * links));
      }
    }
  }

  GraphTransfer collective(CollectiveKind kind, double bytes,
                           std::span<const std::int32_t> members) override {
    GraphTransfer out;
    if (members.size() < 2 || !(bytes > 0)) return out;
    const std::vector<double> spans = spans_of(members);
    const double chunks = static_cast<double>(system_.chunks);
    const double rounds = std::ceil(chunks / static_cast<double>(system_.chunks_at_once));
    double most_waiting = 0, all_waiting = 0, most_moving = 0, all_moving = 0;
    double left = bytes;  // of what the dimensions before have not cut
    out.work = bytes;
    for (std::size_t d = 0; d < spans.size(); ++d) {
      const double n = spans[d];
      if (n < 2) continue;
      const NetworkDimension& dimension = file_.dimensions[d];
      const RingPhase phase = phase_of(kind, d, left, n);
      if (kind != CollectiveKind::kAllToAll && kind != CollectiveKind::kBroadcast) left /= n;
      const double moving = phase.traffic / (dimension.bandwidth.value() * phase.links);
      double waiting = rounds * (phase.steps * step_latency(dimension) + delay());
      // Two operands are read and one sum is written.
      if (system_.memory.value() > 0) {
        waiting += rounds / chunks * 3 * phase.added / system_.memory.value();
      }
      most_waiting = std::max(most_waiting, waiting);
      most_moving = std::max(most_moving, moving);
      all_waiting += waiting;
      all_moving += moving;
      add_uses(out, d, members, phase.traffic / bytes);
    }
    // Chunks follow each other through the dimensions: the slowest one sets the pace, and each of
    // the others is met by one chunk alone.
    const double waiting = most_waiting * (1 - 1 / chunks) + all_waiting / chunks;
    const double moving = most_moving * (1 - 1 / chunks) + all_moving / chunks;
    out.latency = Seconds(waiting);
    out.rate_bound = bytes / moving;
    return out;
  }

  GraphTransfer message(double bytes, std::int32_t from, std::int32_t to) override {
    GraphTransfer out;
    double latency = delay(), rate = 0;
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < file_.dimensions.size(); ++d) {
      const NetworkDimension& dimension = file_.dimensions[d];
      const std::int64_t a = from / stride % dimension.ranks, b = to / stride % dimension.ranks;
      stride *= dimension.ranks;
      if (a == b) continue;
      const std::int64_t apart = std::abs(a - b);
      const double hops = dimension.form == DimensionForm::kRing
                              ? static_cast<double>(std::min(apart, dimension.ranks - apart))
                              : hops_of(dimension);
      latency += hops * dimension.latency.value();
      const double own = dimension.bandwidth.value();
      rate = rate > 0 ? std::min(rate, own) : own;
      out.uses.push_back({resource(out_, d, from), 1});
      out.uses.push_back({resource(in_, d, to), 1});
    }
    out.latency = Seconds(latency);
    out.work = bytes;
    out.rate_bound = rate;
    return out;
  }

  Seconds compute(double flops, double bytes) const override {
    double time = 0;
    if (system_.peak_flops > 0) time = flops / system_.peak_flops;
    if (system_.memory.value() > 0) time = std::max(time, bytes / system_.memory.value());
    return Seconds(time);
  }

 private:
  double delay() const { return system_.endpoint_delay.value(); }
  static double hops_of(const NetworkDimension& dimension) {
    return dimension.form == DimensionForm::kSwitch ? 2 : 1;
  }
  double step_latency(const NetworkDimension& dimension) const {
    return hops_of(dimension) * dimension.latency.value() + delay();
  }
  // Links of a rank in one direction. A ring has two, of which an algorithm of ASTRA-sim uses one.
  static double links_of(const NetworkDimension& dimension) {
    if (dimension.form == DimensionForm::kSwitch) return 1;
    if (dimension.form == DimensionForm::kRing) return 2;
    return std::max(1.0, static_cast<double>(dimension.ranks - 1));
  }

  sim::ResourceId resource(const std::vector<sim::ResourceId>& of, std::size_t d,
                           std::int32_t rank) const {
    return of[d * static_cast<std::size_t>(ranks()) + static_cast<std::size_t>(rank)];
  }

  void add_uses(GraphTransfer& out, std::size_t d, std::span<const std::int32_t> members,
                double weight) const {
    for (const std::int32_t rank : members) {
      out.uses.push_back({resource(out_, d, rank), weight});
      out.uses.push_back({resource(in_, d, rank), weight});
    }
  }

  // How many places the group takes in each dimension. A group that is no block of them is one ring
  // in the outermost dimension that it spans.
  std::vector<double> spans_of(std::span<const std::int32_t> members) const {
    std::vector<double> out;
    double product = 1;
    std::int64_t stride = 1;
    for (const NetworkDimension& dimension : file_.dimensions) {
      std::set<std::int64_t> places;
      for (const std::int32_t rank : members) places.insert(rank / stride % dimension.ranks);
      stride *= dimension.ranks;
      out.push_back(static_cast<double>(places.size()));
      product *= out.back();
    }
    const auto size = static_cast<double>(members.size());
    if (product == size) return out;
    for (std::size_t d = out.size(); d-- > 0;) {
      if (out[d] < 2) continue;
      std::fill(out.begin(), out.end(), 1.0);
      out[d] = size;
      break;
    }
    return out;
  }

  DimensionAlgorithm algorithm_of(CollectiveKind kind, std::size_t dimension) const {
    const auto of = [&](const std::vector<DimensionAlgorithm>& all) {
      return all[std::min(dimension, all.size() - 1)];
    };
    switch (kind) {
      case CollectiveKind::kAllReduce:
        return of(system_.all_reduce);
      case CollectiveKind::kAllGather:
        return of(system_.all_gather);
      case CollectiveKind::kReduceScatter:
        return of(system_.reduce_scatter);
      case CollectiveKind::kAllToAll:
        return of(system_.all_to_all);
      default:
        return DimensionAlgorithm::kRing;
    }
  }

  RingPhase phase_of(CollectiveKind kind, std::size_t which, double bytes, double n) const {
    const DimensionAlgorithm algorithm = algorithm_of(kind, which);
    const NetworkDimension& dimension = file_.dimensions[which];
    RingPhase out;
    const bool is_ring = algorithm == DimensionAlgorithm::kRing;
    out.steps = is_ring ? n - 1 : algorithm == DimensionAlgorithm::kDirect ? 1 : log2_of(n);
    out.traffic = bytes * (n - 1) / n;
    if (kind == CollectiveKind::kAllReduce) {
      out.steps *= 2;
      out.traffic *= 2;
    } else if (kind == CollectiveKind::kBroadcast) {
      out.traffic = bytes;
    } else if (kind == CollectiveKind::kAllToAll && is_ring) {
      out.traffic = bytes * (n - 1) / 2;  // share k of n goes k links far
      out.steps = n * (n - 1) / 2;
    }
    if (adds_up(kind)) out.added = bytes * (n - 1) / n;
    if (algorithm != DimensionAlgorithm::kDirect) return out;
    if (dimension.form == DimensionForm::kFullyConnected) out.links = n - 1;
    if (dimension.form == DimensionForm::kRing) {
      out.traffic *= n * n / 4 / (n - 1);  // the mean way in a ring, both ways around
      out.links = 2;
    }
    return out;
  }

  DimensionFile file_;
  SystemSettings system_;
  std::vector<sim::ResourceId> out_, in_;  // by dimension and rank
};

}  // namespace

std::unique_ptr<GraphNetwork> dimension_network(DimensionFile file, SystemSettings system) {
  return std::make_unique<DimensionNetwork>(std::move(file), std::move(system));
}

}  // namespace stepcast
