// SPDX-License-Identifier: Apache-2.0
#include "schedule/order_replay.h"

#include <algorithm>
#include <array>

#include "core/work_limits.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr double kRounding = 1e-9;  // of sums of shares
constexpr double kNever = -1;

// When the passes of each model chunk and micro-batch have ended.
class Ends {
 public:
  explicit Ends(const Pipeline& pipeline) : micro_batches_(pipeline.micro_batches) {
    const auto all = static_cast<std::size_t>(pipeline.all_chunks() * pipeline.micro_batches);
    for (auto& ends : ends_) ends.assign(all, kNever);
  }
  double& of(bool forward, std::int64_t chunk, std::int64_t micro_batch) {
    return ends_[forward ? 1 : 0][static_cast<std::size_t>(chunk * micro_batches_ + micro_batch)];
  }

 private:
  std::int64_t micro_batches_;
  std::array<std::vector<double>, 2> ends_;
};

class Replay {
 public:
  Replay(const Pipeline& pipeline, const PassTimes& times, const std::vector<StageOrder>& orders)
      : pipeline_(pipeline), times_(times), orders_(orders), ends_(pipeline) {}

  std::optional<OrderSpan> run() {
    std::vector<std::size_t> next(orders_.size(), 0);
    std::vector<double> end(orders_.size(), 0), begin(orders_.size(), 0);
    StopPoint stop;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t j = 0; j < orders_.size(); ++j) {
        for (; next[j] < orders_[j].size(); ++next[j], moved = true) {
          stop.pass();
          const auto stage = static_cast<std::int64_t>(j);
          const Slot& slot = orders_[j][next[j]];
          const auto arrives = arrival(stage, slot);
          if (!arrives) break;
          const double start = std::max(end[j], *arrives);
          if (next[j] == 0) begin[j] = start;
          end[j] = start + time_of(times_, stage, slot);
          keep_end(stage, slot, end[j]);
        }
      }
    }
    OrderSpan out;
    for (std::size_t j = 0; j < orders_.size(); ++j) {
      if (next[j] < orders_[j].size()) return std::nullopt;
      out.longest = std::max(out.longest, end[j] - begin[j]);
      out.makespan = std::max(out.makespan, end[j]);
      out.held.push_back(most_held(static_cast<std::int64_t>(j)));
    }
    return out;
  }

 private:
  std::optional<double> arrival(std::int64_t stage, const Slot& slot) {
    if (slot.pass == Pass::kWeightGradient) return 0;
    const bool forward = slot.pass == Pass::kForward;
    const std::int64_t from = chunk_of(pipeline_, stage, slot.chunk) + (forward ? -1 : 1);
    if (from < 0 || from == pipeline_.all_chunks()) return 0;
    const double sent = ends_.of(forward, from, slot.micro_batch);
    if (sent == kNever) return std::nullopt;
    return sent + (stage_of_chunk(pipeline_, from, slot.micro_batch) == stage ? 0 : times_.hop);
  }
  void keep_end(std::int64_t stage, const Slot& slot, double end) {
    if (slot.pass == Pass::kWeightGradient) return;
    const std::int64_t chunk = chunk_of(pipeline_, stage, slot.chunk);
    ends_.of(slot.pass == Pass::kForward, chunk, slot.micro_batch) = end;
  }
  double most_held(std::int64_t stage) const {
    double held = 0, most = 0;
    for (const Slot& slot : orders_[static_cast<std::size_t>(stage)]) {
      held += growth_of(times_, stage, slot);
      most = std::max(most, held);
    }
    return most;
  }

  const Pipeline& pipeline_;
  const PassTimes& times_;
  const std::vector<StageOrder>& orders_;
  Ends ends_;
};

}  // namespace

double time_of(const PassTimes& times, std::int64_t stage, const Slot& slot) {
  const ChunkTimes& chunk = times.of(stage, slot.chunk);
  switch (slot.pass) {
    case Pass::kForward:
      return chunk.forward;
    case Pass::kBackward:
      return chunk.input_gradient + chunk.weight_gradient;
    case Pass::kInputGradient:
      return chunk.input_gradient;
    case Pass::kWeightGradient:
      return chunk.weight_gradient;
  }
  return 0;
}

double growth_of(const PassTimes& times, std::int64_t stage, const Slot& slot) {
  const ChunkTimes& chunk = times.of(stage, slot.chunk);
  switch (slot.pass) {
    case Pass::kForward:
      return chunk.activations;
    case Pass::kBackward:
      return -chunk.activations;
    case Pass::kInputGradient:
      return chunk.waiting - chunk.activations;
    case Pass::kWeightGradient:
      return -chunk.waiting;
  }
  return 0;
}

std::optional<OrderSpan> replay_orders(const Pipeline& pipeline, const PassTimes& times,
                                       const std::vector<StageOrder>& orders) {
  return Replay(pipeline, times, orders).run();
}

double step_of(const OrderSpan& span, const PassTimes& times) {
  return times.ends_together ? span.makespan : span.longest;
}

bool has_room(const OrderSpan& span, const PassTimes& times) {
  if (times.room.empty()) return true;
  for (std::size_t j = 0; j < span.held.size(); ++j) {
    if (span.held[j] > times.room[j] * (1 + kRounding)) return false;
  }
  return true;
}

}  // namespace stepcast
