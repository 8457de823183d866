// SPDX-License-Identifier: Apache-2.0
// The rules by which passes move are those of sail-sg/zero-bubble-pipeline-parallelism (39f2c186,
// scheduler/zbv_greedy.py and v1f1b.py).
#include "schedule/building_block.h"

#include <algorithm>
#include <optional>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr std::int64_t kPeriod = 6;  // two chunks run three passes each

// These may stand in a slot; the first four are in the order in which a micro-batch runs them.
enum Kind : std::uint8_t {
  kForwardDown,
  kForwardUp,
  kGradientUp,
  kGradientDown,
  kWeights,
  kFree,
};
constexpr std::size_t kKinds = 5;
constexpr bool is_forward(Kind kind) { return kind <= kForwardUp; }
constexpr bool is_gradient(Kind kind) { return kind == kGradientUp || kind == kGradientDown; }
constexpr std::int32_t local_chunk_of(Kind kind) {
  return kind == kForwardUp || kind == kGradientUp ? 1 : 0;
}

// How weight gradients run while passes move.
enum class Weights {
  kInSlots,         // in slots of their own, and move like other passes
  kInGaps,          // in whatever slot is free behind their input gradient
  kBehindGradient,  // in the slot behind their input gradient, and move with it
};

// Slots of one stage: by kind, then by micro-batch. Weight gradients count in the order of their
// input gradients, of whichever chunk.
using Slots = std::array<std::vector<std::int64_t>, kKinds>;

std::vector<Kind> row_of(const Slots& slots) {
  std::int64_t end = 0;
  for (const auto& kind : slots) {
    if (!kind.empty()) end = std::max(end, kind.back() + 1);
  }
  std::vector<Kind> row(static_cast<std::size_t>(end), kFree);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (const std::int64_t slot : slots[kind]) {
      row[static_cast<std::size_t>(slot)] = static_cast<Kind>(kind);
    }
  }
  return row;
}

// Calls `put` with every free slot that a weight gradient takes: there is one behind its input
// gradient, or behind the last pass.
template <class Put>
void fill_gaps(const std::vector<Kind>& row, Put put) {
  std::int64_t waiting = 0, slot = 0;
  for (const Kind kind : row) {
    if (is_gradient(kind)) ++waiting;
    if (kind == kFree && waiting > 0) put(slot), --waiting;
    ++slot;
  }
  for (; waiting > 0; --waiting) put(slot++);
}

// One stage's slots, and what it holds after each of them.
class Row {
 public:
  Row(const Slots& slots, Weights weights) : weights_(weights), kinds_(row_of(slots)) {
    after_.resize(kinds_.size());
    settle(0, size());
  }
  std::int64_t size() const { return static_cast<std::int64_t>(kinds_.size()); }
  Kind at(std::int64_t slot) const { return kinds_[static_cast<std::size_t>(slot)]; }
  std::int64_t most_held() const {
    std::int64_t most = 0;
    for (const Held& held : after_) most = std::max(most, held.chunks);
    return most;
  }
  // Whether the stage would hold no more than `limit` if a pass moved to an earlier slot.
  bool fits(std::int64_t from, std::int64_t to, std::int64_t limit) const {
    Held held = before(to);
    for (std::int64_t slot = to; slot < size(); ++slot) {
      held = next(held, slot == to ? at(from) : slot == from ? kFree : at(slot));
      if (held.chunks > limit) return false;
      if (slot >= from && held == after_[static_cast<std::size_t>(slot)]) return true;
    }
    return true;
  }
  void move(std::int64_t from, std::int64_t to) {
    std::swap(kinds_[static_cast<std::size_t>(from)], kinds_[static_cast<std::size_t>(to)]);
    settle(to, from);
  }

 private:
  struct Held {
    std::int64_t chunks = 0;   // of micro-batches
    std::int64_t waiting = 0;  // weight gradients for a gap
    bool operator==(const Held&) const = default;
  };
  Held before(std::int64_t slot) const {
    return slot == 0 ? Held{} : after_[static_cast<std::size_t>(slot - 1)];
  }
  Held next(Held held, Kind kind) const {
    const bool in_gaps = weights_ == Weights::kInGaps;
    if (is_forward(kind)) ++held.chunks;
    if (kind == kWeights) --held.chunks;
    if (in_gaps && is_gradient(kind)) ++held.waiting;
    if (in_gaps && kind == kFree && held.waiting > 0) --held.waiting, --held.chunks;
    return held;
  }
  // After a change of the slots from `first` to `last`.
  void settle(std::int64_t first, std::int64_t last) {
    for (std::int64_t slot = first; slot < size(); ++slot) {
      Held& held = after_[static_cast<std::size_t>(slot)];
      const Held now = next(before(slot), at(slot));
      if (slot >= last && held == now) return;
      held = now;
    }
  }

  Weights weights_;
  std::vector<Kind> kinds_;
  std::vector<Held> after_;
};

// Moves passes to earlier slots, stage by stage in the order of time.
class Squeeze {
 public:
  Squeeze(std::vector<Slots> stages, std::int64_t micro_batches, Weights weights)
      : stages_(std::move(stages)), micro_batches_(micro_batches), weights_(weights) {
    for (const Slots& slots : stages_) rows_.emplace_back(slots, weights);
    for (const Row& row : rows_) limit_ = std::max(limit_, row.most_held());
  }
  std::vector<Slots> run();

 private:
  enum class Phase { kBegin, kSteady, kEnd };
  // Whether the pass, the next in time, may leave its slot.
  bool may_move(std::int64_t stage, Kind kind, std::int64_t micro_batch);
  std::int64_t earliest(std::int64_t stage, Kind kind, std::int64_t micro_batch) const;
  std::optional<std::int64_t> free_slot(std::int64_t stage, std::int64_t from,
                                        std::int64_t slot) const;
  std::int64_t& slot_of(std::int64_t stage, Kind kind, std::int64_t micro_batch) {
    return stages_[static_cast<std::size_t>(stage)][kind][static_cast<std::size_t>(micro_batch)];
  }
  // The first slot behind a pass.
  std::int64_t end_of(std::int64_t stage, Kind kind, std::int64_t micro_batch) const {
    const bool whole = weights_ == Weights::kBehindGradient && is_gradient(kind);
    return stages_[static_cast<std::size_t>(stage)][kind][static_cast<std::size_t>(micro_batch)] +
           (whole ? 2 : 1);
  }

  std::vector<Slots> stages_;
  std::int64_t micro_batches_;
  Weights weights_;
  std::vector<Row> rows_;
  std::int64_t limit_ = 0;
  Phase phase_ = Phase::kBegin;
};

// The stage from which a pass has its input; none where that is the pass before it on its own.
std::optional<std::int64_t> sender(Kind kind, std::int64_t stage, std::int64_t stages) {
  if (kind == kWeights) return std::nullopt;
  const bool from_before = kind == kForwardDown || kind == kGradientUp;
  const std::int64_t from = from_before ? stage - 1 : stage + 1;
  return from >= 0 && from < stages ? std::optional(from) : std::nullopt;
}

// Passes stay where they are in the steady state, from the first micro-batch that is through until
// the last one comes in. Whole backwards leave gaps even there, into which passes may move.
bool Squeeze::may_move(std::int64_t stage, Kind kind, std::int64_t micro_batch) {
  if (weights_ == Weights::kBehindGradient) return kind != kWeights;
  if (phase_ == Phase::kBegin && stage == 0 && kind == kGradientDown) phase_ = Phase::kSteady;
  if (phase_ == Phase::kBegin) return weights_ == Weights::kInSlots;
  const bool was_steady = phase_ == Phase::kSteady;
  if (was_steady && kind == kForwardDown && micro_batch == micro_batches_ - 1) {
    phase_ = Phase::kEnd;
  }
  return !was_steady;
}

std::int64_t Squeeze::earliest(std::int64_t stage, Kind kind, std::int64_t micro_batch) const {
  std::int64_t out = 0;
  if (const auto from = sender(kind, stage, static_cast<std::int64_t>(stages_.size()))) {
    out = std::max(out, end_of(*from, kind, micro_batch));
  }
  if (kind != kWeights && kind != kForwardDown) {
    out = std::max(out, end_of(stage, static_cast<Kind>(kind - 1), micro_batch));
  }
  if (kind == kWeights) {
    const Slots& slots = stages_[static_cast<std::size_t>(stage)];
    std::vector<std::int64_t> gradients;
    std::ranges::merge(slots[kGradientUp], slots[kGradientDown], std::back_inserter(gradients));
    out = std::max(out, gradients[static_cast<std::size_t>(micro_batch)] + 1);
  }
  if (micro_batch > 0) out = std::max(out, end_of(stage, kind, micro_batch - 1));
  return out;
}

std::optional<std::int64_t> Squeeze::free_slot(std::int64_t stage, std::int64_t from,
                                               std::int64_t slot) const {
  const Row& row = rows_[static_cast<std::size_t>(stage)];
  const bool whole = weights_ == Weights::kBehindGradient && is_gradient(row.at(slot));
  for (std::int64_t to = from; to < slot; ++to) {
    if (row.at(to) != kFree || (whole && row.at(to + 1) != kFree)) continue;
    if (row.fits(slot, to, limit_)) return to;
  }
  return std::nullopt;
}

std::vector<Slots> Squeeze::run() {
  const std::vector<Row> before = rows_;
  std::vector<std::array<std::int64_t, kKinds>> seen(stages_.size());
  std::int64_t longest = 0;
  for (const Row& row : before) longest = std::max(longest, row.size());
  for (std::int64_t slot = 0; slot < longest; ++slot) {
    for (std::size_t j = 0; j < before.size(); ++j) {
      if (slot >= before[j].size() || before[j].at(slot) == kFree) continue;
      const auto stage = static_cast<std::int64_t>(j);
      const Kind kind = before[j].at(slot);
      const std::int64_t micro_batch = seen[j][kind]++;
      if (!may_move(stage, kind, micro_batch)) continue;
      const auto to = free_slot(stage, earliest(stage, kind, micro_batch), slot);
      if (!to) continue;
      slot_of(stage, kind, micro_batch) = *to;
      rows_[j].move(slot, *to);
      if (weights_ == Weights::kBehindGradient && is_gradient(kind)) {
        rows_[j].move(slot + 1, *to + 1);
      }
    }
  }
  return std::move(stages_);
}

// Runs all passes as soon as they can, each in one slot, in the order of their stage.
std::vector<Slots> run_eagerly(const std::vector<Slots>& stages) {
  std::vector<Slots> out(stages.size());
  std::vector<std::vector<Kind>> rows;
  std::size_t longest = 0;
  for (const Slots& slots : stages) {
    longest = std::max(longest, rows.emplace_back(row_of(slots)).size());
  }
  std::vector<std::int64_t> end(stages.size(), 0);
  for (std::size_t slot = 0; slot < longest; ++slot) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (slot >= rows[j].size() || rows[j][slot] == kFree) continue;
      const Kind kind = rows[j][slot];
      std::int64_t begin = end[j];
      const auto from =
          sender(kind, static_cast<std::int64_t>(j), static_cast<std::int64_t>(stages.size()));
      if (from) {
        const auto& sent = out[static_cast<std::size_t>(*from)][kind];
        begin = std::max(begin, sent[out[j][kind].size()] + 1);
      }
      out[j][kind].push_back(begin);
      end[j] = begin + 1;
    }
  }
  return out;
}

std::vector<Slots> repeated(const std::vector<BlockSlots>& block, std::int64_t micro_batches) {
  std::vector<Slots> out(block.size());
  for (std::size_t j = 0; j < block.size(); ++j) {
    for (std::size_t kind = 0; kind < block[j].size(); ++kind) {
      for (std::int64_t i = 0; i < micro_batches; ++i) {
        out[j][kind].push_back(block[j][kind] + kPeriod * i);
      }
    }
  }
  return out;
}

void put_weights_in_gaps(std::vector<Slots>& stages) {
  for (Slots& slots : stages) {
    slots[kWeights].clear();
    fill_gaps(row_of(slots), [&](std::int64_t slot) { slots[kWeights].push_back(slot); });
  }
}

// Turns what stands in a stage's slots, one after the other, into its order of passes.
class Writer {
 public:
  explicit Writer(bool splits) : splits_(splits) {}
  void add(Kind kind) {
    const std::int32_t chunk = local_chunk_of(kind);
    if (is_forward(kind)) return add(Pass::kForward, forwards_, chunk);
    add(splits_ ? Pass::kInputGradient : Pass::kBackward, gradients_, chunk);
  }
  // The chunk on the way up goes first where one of its weight gradients waits.
  void add_weights() { add(Pass::kWeightGradient, weights_, weights_[1] < gradients_[1] ? 1 : 0); }
  StageOrder take() { return std::move(order_); }

 private:
  void add(Pass pass, std::array<std::int32_t, 2>& count, std::int32_t chunk) {
    order_.push_back({pass, count[static_cast<std::size_t>(chunk)]++, chunk});
  }
  bool splits_;
  StageOrder order_;
  std::array<std::int32_t, 2> forwards_{}, gradients_{}, weights_{};
};

std::vector<StageOrder> written(const std::vector<Slots>& stages, bool splits) {
  std::vector<StageOrder> out;
  for (const Slots& slots : stages) {
    Writer writer(splits);
    for (const Kind kind : row_of(slots)) {
      if (kind == kWeights && splits) writer.add_weights();
      if (kind < kWeights) writer.add(kind);
    }
    out.push_back(writer.take());
  }
  return out;
}

}  // namespace

std::vector<StageOrder> split_block_orders(const Pipeline& pipeline,
                                           const std::vector<BlockSlots>& block) {
  std::vector<Slots> stages = repeated(block, pipeline.micro_batches);
  put_weights_in_gaps(stages);
  stages = run_eagerly(Squeeze(stages, pipeline.micro_batches, Weights::kInSlots).run());
  for (Slots& slots : stages) slots[kWeights].clear();
  stages = Squeeze(stages, pipeline.micro_batches, Weights::kInGaps).run();
  put_weights_in_gaps(stages);
  stages = run_eagerly(stages);
  put_weights_in_gaps(stages);
  return written(stages, true);
}

std::vector<StageOrder> whole_block_orders(const Pipeline& pipeline,
                                           const std::vector<BlockSlots>& block) {
  std::vector<Slots> stages = repeated(block, pipeline.micro_batches);
  for (Slots& slots : stages) {
    for (const Kind gradient : {kGradientUp, kGradientDown}) {
      for (const std::int64_t slot : slots[gradient]) slots[kWeights].push_back(slot + 1);
    }
    std::ranges::sort(slots[kWeights]);
  }
  stages = Squeeze(stages, pipeline.micro_batches, Weights::kBehindGradient).run();
  for (Slots& slots : stages) slots[kWeights].clear();
  return written(stages, false);
}

}  // namespace stepcast
