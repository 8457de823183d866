// SPDX-License-Identifier: Apache-2.0
#include "program/check_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/host_link.h"
#include "core/overloaded.h"
#include "program/element_range.h"
#include "program/instruction.h"
#include "program/program.h"
#include "schedule/pass.h"

namespace stepcast {
namespace {

// Flat elements that are held.
class HeldElements {
 public:
  bool hold(ElementRange range) {  // false: some of them are held already
    auto after = by_begin_.upper_bound(range.begin);
    if (after != by_begin_.end() && after->first < range.end) return false;
    if (after != by_begin_.begin()) {
      const auto before = std::prev(after);
      if (before->second > range.begin) return false;
      if (before->second == range.begin) {
        range.begin = before->first;
        by_begin_.erase(before);
      }
    }
    if (after != by_begin_.end() && after->first == range.end) {
      range.end = after->second;
      by_begin_.erase(after);
    }
    by_begin_[range.begin] = range.end;
    return true;
  }
  bool free(const ElementRange& range) {  // false: some of them are not held
    const auto after = by_begin_.upper_bound(range.begin);
    if (after == by_begin_.begin()) return false;
    const auto around = std::prev(after);
    const ElementRange held{around->first, around->second};
    if (held.end < range.end) return false;
    by_begin_.erase(around);
    if (held.begin < range.begin) by_begin_[held.begin] = range.begin;
    if (range.end < held.end) by_begin_[range.end] = held.end;
    return true;
  }
  bool empty() const { return by_begin_.empty(); }

 private:
  std::map<std::int64_t, std::int64_t> by_begin_;  // begin and end, never touching
};

// How far a micro-batch has come in a chunk, and what of it waits at the chunk's ends.
struct Progress {
  std::int32_t forward = 0;             // blocks that have run
  std::int32_t backward = 0, last = 0;  // blocks whose backward, or last pass, is still to come
  bool input = false, output = false;   // activations
  bool output_gradient = false, input_gradient = false;
  bool deferred = false;  // weight gradients of the head, which has them apart by itself
};

class StepCheck {
 public:
  StepCheck(const Program& program, const Role& role) : program_(program), role_(role) {
    for (const Instruction& what : role.instructions) {
      if (what.slot() != nullptr) {
        micro_batches_ = std::max(micro_batches_, what.slot()->micro_batch + 1);
      }
    }
    for (const Role& other : program.roles) {
      stands_twice_ = stands_twice_ || (other.stage != role.stage && holds(other, role.chunks[0]));
    }
    for (const Chunk& chunk : role.chunks) {
      const auto blocks = static_cast<std::int32_t>(chunk.blocks.size());
      progress_.emplace_back(static_cast<std::size_t>(micro_batches_),
                             Progress{.backward = blocks, .last = blocks});
    }
  }

  std::optional<std::string> run() {
    for (const Instruction& what : role_.instructions) {
      now_ = &what;
      open_windows(what);
      std::visit(Overloaded{[&](const RunPass& pass) { run_pass(pass); },
                            [&](const Send& send) { take(send.slot); },
                            [&](const Receive& receive) { arrive(receive.slot); },
                            [&](const ActivationCopy& copy) { move(copy); }, [](const auto&) {}},
                 what.work);
      close_windows(what);
      if (fault_) return fault_;
    }
    now_ = nullptr;
    expect_end();
    return fault_;
  }

 private:
  Progress& at(const Slot& slot) {
    return progress_[static_cast<std::size_t>(slot.chunk)]
                    [static_cast<std::size_t>(slot.micro_batch)];
  }
  const Block& block(std::int32_t chunk, bool last) const {
    const std::vector<BlockId>& blocks = role_.chunks[static_cast<std::size_t>(chunk)].blocks;
    return program_.block(last ? blocks.back() : blocks.front());
  }
  bool is_split(std::int32_t chunk) const {
    return block(chunk, false).form == BackwardForm::kSplit;
  }
  bool defers_last(std::int32_t chunk) const {
    return !is_split(chunk) && block(chunk, true).form == BackwardForm::kSplit;
  }

  static bool holds(const Role& role, const Chunk& chunk) {
    return std::ranges::find(role.chunks, chunk.model_chunk, &Chunk::model_chunk) !=
           role.chunks.end();
  }

  // The chunk of this role that stands `step` behind another in the model; null: another stage's.
  // Where two copies of the model stand on the stages, a micro-batch meets one chunk of each.
  Progress* neighbour(const Slot& slot, std::int64_t step) {
    if (stands_twice_) return nullptr;
    const std::int64_t wanted =
        role_.chunks[static_cast<std::size_t>(slot.chunk)].model_chunk + step;
    for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
      if (role_.chunks[c].model_chunk == wanted) {
        return &progress_[c][static_cast<std::size_t>(slot.micro_batch)];
      }
    }
    return nullptr;
  }

  void expect(bool holds, const char* what) {
    if (holds || fault_) return;
    std::string where = fmt::format("stage {}", role_.stage);
    if (now_ != nullptr) where += fmt::format(": {}", now_->name);
    if (now_ != nullptr && now_->slot() != nullptr) {
      const Slot& slot = *now_->slot();
      where += fmt::format(" of {}, micro-batch {}, chunk {}", name_of(slot.pass), slot.micro_batch,
                           slot.chunk);
    }
    fault_ = where + ": " + what;
  }

  void take_once(bool& there, const char* missing) {
    expect(there, missing);
    there = false;
  }
  void give(bool& there, const char* twice) {
    expect(!there, twice);
    there = true;
  }

  void run_pass(const RunPass& run) {
    switch (run.slot.pass) {
      case Pass::kForward:
        return forward(run);
      case Pass::kBackward:
      case Pass::kInputGradient:
        return backward(run);
      case Pass::kWeightGradient: {
        Progress& own = at(run.slot);
        if (defers_last(run.slot.chunk)) {
          return take_once(own.deferred, "these weight gradients do not wait");
        }
        expect(own.last == run.block_end && own.backward <= run.block_begin,
               "weight gradients of these blocks come before their input gradients, or twice");
        own.last = run.block_begin;
        return;
      }
    }
  }

  void forward(const RunPass& run) {
    Progress& own = at(run.slot);
    const Chunk& chunk = role_.chunks[static_cast<std::size_t>(run.slot.chunk)];
    expect(own.forward == run.block_begin, "these blocks have run, or those before them have not");
    if (run.block_begin == 0 && chunk.model_chunk > 0) {
      take_once(own.input, "nobody holds the activation that it reads");
    }
    own.forward = run.block_end;
    const bool ends = run.block_end == static_cast<std::int32_t>(chunk.blocks.size());
    if (!ends || !block(run.slot.chunk, true).output.valid()) return;
    Progress* next = neighbour(run.slot, 1);
    give(next != nullptr ? next->input : own.output, "the activation that it hands on is there");
  }

  void backward(const RunPass& run) {
    Progress& own = at(run.slot);
    const auto blocks = static_cast<std::int32_t>(
        role_.chunks[static_cast<std::size_t>(run.slot.chunk)].blocks.size());
    expect(own.forward == blocks, "it comes before the forward has ended");
    expect(own.backward == run.block_end, "these blocks have run, or those behind them have not");
    if (run.block_end == blocks && block(run.slot.chunk, true).output_gradient.valid()) {
      take_once(own.output_gradient, "nobody holds the gradient that it reads");
    }
    for (std::int32_t b = run.block_begin; b < run.block_end && !in_host_memory_.empty(); ++b) {
      expect(!in_host_memory_.contains({run.slot.chunk, run.slot.micro_batch, b}),
             "what it reads lies in host memory");
    }
    own.backward = run.block_begin;
    if (!is_split(run.slot.chunk)) own.last = run.block_begin;
    if (defers_last(run.slot.chunk) && run.block_end == blocks) own.deferred = true;
    if (run.block_begin > 0 || !block(run.slot.chunk, false).input_gradient.valid()) return;
    Progress* before = neighbour(run.slot, -1);
    give(before != nullptr ? before->output_gradient : own.input_gradient,
         "the gradient that it hands on is there");
  }

  void take(const Slot& slot) {
    const bool forward = slot.pass == Pass::kForward;
    take_once(forward ? at(slot).output : at(slot).input_gradient,
              forward ? "nobody holds the activation" : "nobody holds the gradient");
  }
  void arrive(const Slot& slot) {
    const bool forward = slot.pass == Pass::kForward;
    give(forward ? at(slot).input : at(slot).output_gradient,
         forward ? "the activation is there" : "the gradient is there");
  }

  void move(const ActivationCopy& copy) {
    const Progress& own = at(copy.slot);
    for (std::int32_t b = copy.block_begin; b < copy.block_end; ++b) {
      const std::tuple key{copy.slot.chunk, copy.slot.micro_batch, b};
      if (copy.direction == CopyDirection::kToHost) {
        expect(b < own.forward && b < own.backward, "the block has nothing saved");
        expect(in_host_memory_.insert(key).second, "it lies in host memory");
      } else {
        expect(in_host_memory_.erase(key) == 1, "it does not lie in host memory");
      }
    }
  }

  void open_windows(const Instruction& what) {
    for (const ElementRange& range : what.windows.get().holds_gradients) {
      if (range.size() > 0) expect(gradients_.hold(range), "gradients of these elements are held");
    }
    const auto* call = what.as<CollectiveCall>();
    const bool opens = call != nullptr && call->purpose == Purpose::kParameters &&
                       call->elements.size() > 0 && total(what.birth) > 0;
    if (opens) expect(parameters_.hold(call->elements), "these parameters are gathered");
  }
  void close_windows(const Instruction& what) {
    for (const ElementRange& range : what.windows.get().frees_gradients) {
      if (range.size() > 0) expect(gradients_.free(range), "nobody holds these gradients");
    }
    for (const ElementRange& range : what.windows.get().frees_parameters) {
      if (range.size() > 0) expect(parameters_.free(range), "these parameters are not gathered");
    }
  }

  bool has_begun(std::size_t chunk, std::size_t micro_batch) const {
    const Progress& own = progress_[chunk][micro_batch];
    return own.forward > 0 || own.input || own.output_gradient;
  }
  // Whether the other copy of the model has the micro-batch, which this stage meets in that one.
  bool is_of_other_copy(std::size_t chunk, std::size_t micro_batch) const {
    if (!stands_twice_ || has_begun(chunk, micro_batch)) return false;
    for (std::size_t c = 0; c < progress_.size(); ++c) {
      if (has_begun(c, micro_batch)) return true;
    }
    return false;
  }

  void expect_end() {
    for (std::size_t c = 0; c < progress_.size(); ++c) {
      for (std::size_t m = 0; m < progress_[c].size(); ++m) {
        if (is_of_other_copy(c, m)) continue;
        const Progress& own = progress_[c][m];
        expect(own.backward == 0 && own.last == 0 && !own.deferred,
               "a micro-batch is not finished");
        expect(!own.input && !own.output && !own.input_gradient && !own.output_gradient,
               "an activation or a gradient between chunks is never freed");
      }
    }
    expect(in_host_memory_.empty(), "saved activations stay in host memory");
    expect(gradients_.empty(), "whole gradients are never freed");
    expect(parameters_.empty(), "gathered parameters are never freed");
  }

  const Program& program_;
  const Role& role_;
  const Instruction* now_ = nullptr;
  std::int32_t micro_batches_ = 0;
  bool stands_twice_ = false;                    // another stage holds the same chunks of the model
  std::vector<std::vector<Progress>> progress_;  // by chunk and micro-batch
  // Chunk, micro-batch, block.
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> in_host_memory_;
  HeldElements gradients_, parameters_;
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> fault_of(const Program& program, const Role& role) {
  return StepCheck(program, role).run();
}

}  // namespace stepcast
