// SPDX-License-Identifier: Apache-2.0
#include "schedule/order_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

// Which passes of (model chunk, micro-batch) have been run.
class Ledger {
 public:
  explicit Ledger(const Pipeline& pipeline)
      : chunks_(pipeline.all_chunks()),
        micro_batches_(pipeline.micro_batches),
        done_(static_cast<std::size_t>(chunks_ * micro_batches_)) {}

  std::int64_t chunks() const { return chunks_; }
  bool done(std::int64_t chunk, std::int64_t micro_batch, Pass pass) const {
    return done_[place(chunk, micro_batch)][index_of(pass)];
  }
  void set(std::int64_t chunk, std::int64_t micro_batch, Pass pass) {
    done_[place(chunk, micro_batch)][index_of(pass)] = true;
  }
  bool gradient_sent(std::int64_t chunk, std::int64_t micro_batch) const {
    return done(chunk, micro_batch, Pass::kBackward) ||
           done(chunk, micro_batch, Pass::kInputGradient);
  }

 private:
  std::size_t place(std::int64_t chunk, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(chunk * micro_batches_ + micro_batch);
  }
  std::int64_t chunks_;
  std::int64_t micro_batches_;
  std::vector<std::array<bool, kPasses>> done_;
};

Error wrong(const std::string& file, std::int64_t stage, std::string message) {
  return {ErrorCode::kIllegal, std::move(message), file, fmt::format("row {}", stage + 1), ""};
}

// "the backward of micro-batch 1 (0B1)"
std::string text(const Pipeline& pipeline, std::int64_t stage, const Slot& slot) {
  return fmt::format("the {} of micro-batch {} ({})", name_of(slot.pass), slot.micro_batch,
                     cell_text(pipeline, stage, slot));
}

// Rules inside one stage, in its own order.
void check_stage(const StageOrder& order, const Pipeline& pipeline, std::int64_t stage,
                 const std::string& file, Errors& errors) {
  Ledger ledger(pipeline);
  const auto tell = [&](const Slot& slot, const char* what) {
    errors.push_back(wrong(file, stage, text(pipeline, stage, slot) + what));
  };
  for (const Slot& slot : order) {
    const auto done = [&](Pass pass) { return ledger.done(slot.chunk, slot.micro_batch, pass); };
    const bool again = done(slot.pass) ||
                       (slot.pass == Pass::kBackward && done(Pass::kInputGradient)) ||
                       (slot.pass == Pass::kInputGradient && done(Pass::kBackward));
    if (again) {
      tell(slot, " stands twice");
    } else if (slot.pass != Pass::kForward && !done(Pass::kForward)) {
      tell(slot, " stands before its forward");
    } else if (slot.pass == Pass::kWeightGradient && !done(Pass::kInputGradient)) {
      tell(slot, " stands before its input gradient");
    }
    ledger.set(slot.chunk, slot.micro_batch, slot.pass);
  }
  for (std::int32_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const auto [begin, end] = micro_batches_of(pipeline, stage, chunk);
    for (auto i = static_cast<std::int32_t>(begin); i < end; ++i) {
      const bool forward = ledger.done(chunk, i, Pass::kForward);
      const bool backward =
          ledger.done(chunk, i, Pass::kBackward) || ledger.done(chunk, i, Pass::kWeightGradient);
      if (forward && backward) continue;
      tell({forward ? Pass::kBackward : Pass::kForward, i, chunk}, " is missing");
    }
  }
}

// Runs all stages together, each in its own order, as far as they come.
class Walk {
 public:
  Walk(const std::vector<StageOrder>& orders, const Pipeline& pipeline)
      : orders_(orders), pipeline_(pipeline), ledger_(pipeline), next_(orders.size(), 0) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < orders_.size(); ++stage) {
        for (; stands(stage) && can_run(stage); ++next_[stage], moved = true) {
          const Slot& slot = at(stage);
          ledger_.set(chunk(stage), slot.micro_batch, slot.pass);
        }
      }
    }
  }

  // The stages that wait for each other, each for the one behind it and the last for the first;
  // empty when all came to their end.
  std::vector<std::size_t> circle() const {
    std::vector<std::size_t> way;
    for (std::size_t stage = 0; stage < orders_.size() && way.empty(); ++stage) {
      if (stands(stage)) way.push_back(stage);
    }
    if (way.empty()) return way;
    while (true) {
      const auto to = static_cast<std::size_t>(
          stage_of_chunk(pipeline_, awaited(way.back()), at(way.back()).micro_batch));
      const auto seen = std::ranges::find(way, to);
      if (seen != way.end()) {
        way.erase(way.begin(), seen);
        return way;
      }
      way.push_back(to);
    }
  }

  // "0B0 waits for 1B0 of row 2, which stands behind 1F1"
  std::string wait(std::size_t stage) const {
    const std::int64_t from = awaited(stage);
    const auto to =
        static_cast<std::size_t>(stage_of_chunk(pipeline_, from, at(stage).micro_batch));
    const StageOrder& order = orders_[to];
    const auto sends = std::ranges::find_if(order, [&](const Slot& slot) {
      return slot.micro_batch == at(stage).micro_batch && sends_to(slot, at(stage)) &&
             chunk_of(pipeline_, static_cast<std::int64_t>(to), slot.chunk) == from;
    });
    return fmt::format("{} waits for {} of row {}, which stands behind {}", cell(stage, at(stage)),
                       cell(to, *sends), to + 1, cell(to, at(to)));
  }

 private:
  bool stands(std::size_t stage) const { return next_[stage] < orders_[stage].size(); }
  const Slot& at(std::size_t stage) const { return orders_[stage][next_[stage]]; }
  std::int64_t chunk(std::size_t stage) const {
    return chunk_of(pipeline_, static_cast<std::int64_t>(stage), at(stage).chunk);
  }
  std::string cell(std::size_t stage, const Slot& slot) const {
    return cell_text(pipeline_, static_cast<std::int64_t>(stage), slot);
  }
  // The model chunk whose pass hands the stage's next one its input.
  std::int64_t awaited(std::size_t stage) const {
    return chunk(stage) + (at(stage).pass == Pass::kForward ? -1 : 1);
  }
  static bool sends_to(const Slot& sender, const Slot& receiver) {
    if (receiver.pass == Pass::kForward) return sender.pass == Pass::kForward;
    return sender.pass == Pass::kBackward || sender.pass == Pass::kInputGradient;
  }
  // A pass may run when what it receives from the neighbouring chunk has been sent.
  bool can_run(std::size_t stage) const {
    const Slot& slot = at(stage);
    if (slot.pass == Pass::kWeightGradient) return true;
    const std::int64_t from = awaited(stage);
    if (from < 0 || from == ledger_.chunks()) return true;
    return slot.pass == Pass::kForward ? ledger_.done(from, slot.micro_batch, Pass::kForward)
                                       : ledger_.gradient_sent(from, slot.micro_batch);
  }

  const std::vector<StageOrder>& orders_;
  const Pipeline& pipeline_;
  Ledger ledger_;
  std::vector<std::size_t> next_;
};

}  // namespace

Errors check_orders(const std::vector<StageOrder>& orders, const Pipeline& pipeline,
                    const std::string& file) {
  Errors errors;
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    check_stage(orders[stage], pipeline, static_cast<std::int64_t>(stage), file, errors);
  }
  if (!errors.empty()) return errors;
  const Walk walk(orders, pipeline);
  const std::vector<std::size_t> circle = walk.circle();
  if (circle.empty()) return errors;
  std::vector<std::string> waits;
  for (const std::size_t stage : circle) waits.push_back(walk.wait(stage));
  errors.push_back(wrong(file, static_cast<std::int64_t>(circle.front()),
                         fmt::format("a deadlock: {}", fmt::join(waits, "; "))));
  return errors;
}

}  // namespace stepcast
