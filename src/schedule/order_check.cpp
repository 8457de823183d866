// SPDX-License-Identifier: Apache-2.0
#include "schedule/order_check.h"

#include <fmt/format.h>

#include <array>

namespace stepcast {
namespace {

std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

// Which passes of (model chunk, micro-batch) have been run.
class Ledger {
 public:
  Ledger(const Layout& layout, std::int64_t micro_batches)
      : chunks_(layout.pp * layout.virtual_stages),
        micro_batches_(micro_batches),
        done_(static_cast<std::size_t>(chunks_ * micro_batches)) {}

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

std::string text(const Slot& slot) {
  return fmt::format("the {} of micro-batch {} in chunk {}", name_of(slot.pass), slot.micro_batch,
                     slot.chunk);
}

// Rules inside one stage, in its own order.
void check_stage(const StageOrder& order, const Layout& layout, std::int64_t stage,
                 std::int64_t micro_batches, const std::string& file, Errors& errors) {
  Ledger ledger(layout, micro_batches);
  for (const Slot& slot : order) {
    const auto done = [&](Pass pass) { return ledger.done(slot.chunk, slot.micro_batch, pass); };
    const bool again = done(slot.pass) ||
                       (slot.pass == Pass::kBackward && done(Pass::kInputGradient)) ||
                       (slot.pass == Pass::kInputGradient && done(Pass::kBackward));
    if (again) {
      errors.push_back(wrong(file, stage, text(slot) + " stands twice"));
    } else if (slot.pass != Pass::kForward && !done(Pass::kForward)) {
      errors.push_back(wrong(file, stage, text(slot) + " stands before its forward"));
    } else if (slot.pass == Pass::kWeightGradient && !done(Pass::kInputGradient)) {
      errors.push_back(wrong(file, stage, text(slot) + " stands before its input gradient"));
    }
    ledger.set(slot.chunk, slot.micro_batch, slot.pass);
  }
  for (std::int32_t chunk = 0; chunk < layout.virtual_stages; ++chunk) {
    for (std::int32_t i = 0; i < micro_batches; ++i) {
      const bool forward = ledger.done(chunk, i, Pass::kForward);
      const bool backward =
          ledger.done(chunk, i, Pass::kBackward) || ledger.done(chunk, i, Pass::kWeightGradient);
      if (forward && backward) continue;
      const Pass absent = forward ? Pass::kBackward : Pass::kForward;
      errors.push_back(wrong(file, stage, text({absent, i, chunk}) + " is missing"));
    }
  }
}

// A pass may run when what it receives from the neighbouring chunk has been sent.
bool can_run(const Ledger& ledger, const Slot& slot, std::int64_t chunk) {
  switch (slot.pass) {
    case Pass::kForward:
      return chunk == 0 || ledger.done(chunk - 1, slot.micro_batch, Pass::kForward);
    case Pass::kBackward:
    case Pass::kInputGradient:
      return chunk + 1 == ledger.chunks() || ledger.gradient_sent(chunk + 1, slot.micro_batch);
    case Pass::kWeightGradient:
      return true;
  }
  return false;
}

void check_waits(const std::vector<StageOrder>& orders, const Layout& layout,
                 std::int64_t micro_batches, const std::string& file, Errors& errors) {
  Ledger ledger(layout, micro_batches);
  std::vector<std::size_t> next(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      for (; next[stage] < orders[stage].size(); ++next[stage]) {
        const Slot& slot = orders[stage][next[stage]];
        const auto chunk = chunk_of(layout, static_cast<std::int64_t>(stage), slot.chunk);
        if (!can_run(ledger, slot, chunk)) break;
        ledger.set(chunk, slot.micro_batch, slot.pass);
        moved = true;
      }
    }
  }
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    if (next[stage] == orders[stage].size()) continue;
    errors.push_back(wrong(file, static_cast<std::int64_t>(stage),
                           text(orders[stage][next[stage]]) + " waits for ever (a deadlock)"));
  }
}

}  // namespace

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kBackward:
      return "backward";
    case Pass::kInputGradient:
      return "input gradient";
    case Pass::kWeightGradient:
      return "weight gradient";
  }
  return "";
}

Errors check_orders(const std::vector<StageOrder>& orders, const Layout& layout,
                    std::int64_t micro_batches, const std::string& file) {
  Errors errors;
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    check_stage(orders[stage], layout, static_cast<std::int64_t>(stage), micro_batches, file,
                errors);
  }
  if (errors.empty()) check_waits(orders, layout, micro_batches, file, errors);
  return errors;
}

}  // namespace stepcast
