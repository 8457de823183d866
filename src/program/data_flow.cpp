// SPDX-License-Identifier: Apache-2.0
#include "program/data_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "core/overloaded.h"
#include "layout/rank_grid.h"
#include "program/program.h"

namespace stepcast {
namespace {

constexpr std::int32_t kUnused = -1;

// One piece of data, and who has used it last. Places count on through two steps.
struct Cell {
  std::int32_t writer = kUnused;
  std::array<std::int32_t, kStreams> readers{};  // by stream, plus one
};

// Data that flat elements have.
enum Kind {
  kParameters,   // as they are kept
  kGathered,     // in a window
  kGradients,    // as passes add to them
  kSummed,       // among the ranks of a copy, before the copies are
  kReduced,      // what the optimizer, or the host, gets
  kArrived,      // parameters that have come from host memory
  kOnHost,       // gradients there
  kHostUpdated,  // parameters there
  kKinds
};
constexpr std::int32_t kMostPieces = 64;  // states that move piece by piece have as many at most

class Flow {
 public:
  Flow(const Program& program, const Role& role, const RankGrid& grid)
      : program_(program), role_(role), grid_(grid) {
    cut();
    for (std::vector<Cell>& cells : elements_) cells.resize(segments());
    for (std::vector<Cell>& cells : pieces_) cells.resize(kMostPieces);
    out_.after.resize(role.instructions.size());
  }

  // The second step has that before it, as every later one.
  DataFlow find() {
    const auto count = static_cast<std::int32_t>(role_.instructions.size());
    for (const bool steady : {false, true}) {
      is_steady_ = steady;
      std::fill(state_.begin(), state_.end(), Reduction{});
      for (std::int32_t i = 0; i < count && !out_.fault; ++i) {
        now_ = i + (steady ? count : 0);
        needs_.fill(kUnused);
        visit(i, role_.instructions[static_cast<std::size_t>(i)]);
        if (steady) keep(i);
      }
    }
    return std::move(out_);
  }

 private:
  // Contributions that are not summed yet: among the ranks that share a copy of the states, and
  // among the copies.
  struct Reduction {
    bool inner = false, outer = false;
  };

  std::size_t segments() const { return bounds_.empty() ? 0 : bounds_.size() - 1; }

  void cut() {
    const auto add = [&](ElementRange range) {
      if (range.size() <= 0) return;
      bounds_.push_back(range.begin);
      bounds_.push_back(range.end);
    };
    for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
      for (std::size_t b = 0; b < role_.chunks[c].blocks.size(); ++b) {
        for (const FlatStretch& stretch : role_.stretches) add(range_of(stretch, c, b));
      }
    }
    for (const FlatStretch& stretch : role_.stretches) add(stretch.range);
    for (const Instruction& what : role_.instructions) {
      if (const auto* call = what.as<CollectiveCall>()) add(call->elements);
      if (const auto* copy = what.as<StateCopy>()) add(copy->part.elements);
      for (const ElementRange& range : what.windows.get().frees_parameters) add(range);
      for (const ElementRange& range : what.windows.get().holds_gradients) add(range);
    }
    std::ranges::sort(bounds_);
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    state_.resize(segments());
    in_window_.assign(segments(), false);
    has_window_.assign(segments(), false);
    has_left_.assign(segments(), false);
    group_.assign(segments(), AxisGroup::kData);
    for (const FlatStretch& stretch : role_.stretches) {
      each(stretch.range, [&](std::size_t s) { group_[s] = stretch.group; });
    }
    for (const Instruction& what : role_.instructions) {
      for (const ElementRange& range : what.windows.get().frees_parameters) {
        each(range, [&](std::size_t s) { in_window_[s] = true; });
      }
      for (const ElementRange& range : what.windows.get().holds_gradients) {
        each(range, [&](std::size_t s) { has_window_[s] = true; });
      }
    }
  }

  template <class Visit>
  void each(ElementRange range, Visit&& visit) const {
    if (range.size() <= 0) return;
    auto s =
        static_cast<std::size_t>(std::ranges::lower_bound(bounds_, range.begin) - bounds_.begin());
    for (; s + 1 < bounds_.size() && bounds_[s] < range.end; ++s) visit(s);
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t s = 0; s < segments(); ++s) visit(s);
  }

  ElementRange range_of(const FlatStretch& stretch, std::size_t chunk, std::size_t index) const {
    const std::int64_t begin = stretch.offsets[chunk][index];
    const Block& block = program_.block(role_.chunks[chunk].blocks[index]);
    for (const GroupElements& part : block.by_group) {
      if (part.group == stretch.group) return {begin, begin + part.elements};
    }
    return {begin, begin};
  }
  // visit(segment), of a block's trained parameters.
  template <class Visit>
  void each_of_block(std::int32_t chunk, std::int32_t index, Visit&& visit) const {
    for (const FlatStretch& stretch : role_.stretches) {
      each(range_of(stretch, static_cast<std::size_t>(chunk), static_cast<std::size_t>(index)),
           visit);
    }
  }

  Stream stream_of(std::int32_t place) const {
    const std::size_t count = role_.instructions.size();
    return role_.instructions[static_cast<std::size_t>(place) % count].stream;
  }
  void need(std::int32_t before) {
    if (before == kUnused || before == now_) return;
    std::int32_t& own = needs_[static_cast<std::size_t>(stream_of(before))];
    own = std::max(own, before);
  }
  void keep(std::int32_t i) {
    const auto count = static_cast<std::int32_t>(role_.instructions.size());
    for (std::size_t s = 0; s < needs_.size(); ++s) {
      if (needs_[s] == kUnused || s == static_cast<std::size_t>(stream_of(now_))) continue;
      out_.after[static_cast<std::size_t>(i)].push_back(needs_[s] - count);
    }
  }

  void read(Cell& cell, const char* what) {
    if (cell.writer == kUnused && is_steady_) fail(fmt::format("nobody has written {}", what));
    need(cell.writer);
    cell.readers[static_cast<std::size_t>(stream_of(now_))] = now_ + 1;
  }
  void write(Cell& cell) {
    need(cell.writer);
    for (const std::int32_t reader : cell.readers) need(reader - 1);
    cell.writer = now_;
    cell.readers = {};
  }
  void bear(Cell& cell) {  // new memory
    cell.writer = now_;
    cell.readers = {};
  }
  Cell& at(Kind kind, std::size_t segment) { return elements_[kind][segment]; }

  void fail(const std::string& what) {
    if (out_.fault) return;
    const auto count = static_cast<std::int32_t>(role_.instructions.size());
    out_.fault = fmt::format("{}: {}", describe(role_, now_ % count), what);
  }

  void visit(std::int32_t i, const Instruction& what) {
    for (const ElementRange& range : what.windows.get().holds_gradients) {
      each(range, [&](std::size_t s) { bear(at(kGradients, s)); });
    }
    std::visit(
        Overloaded{[&](const RunPass& run) { pass(run); },
                   [&](const RunBlock& run) { block(i, run); },
                   [&](const CollectiveCall& call) { collective(what, call); },
                   [&](const Send& send) { read(boundary(send.slot, true), "what it sends"); },
                   [&](const Receive& receive) { bear(boundary(receive.slot, false)); },
                   [](const HostWait&) {}, [&](const ActivationCopy& copy) { move(copy); },
                   [&](const StateCopy& copy) { move(what, copy); },
                   [&](const HostUpdate& update) { update_on_host(update); }},
        what.work);
  }

  // A pass gets this from another stage, or makes it for one.
  Cell& boundary(const Slot& slot, bool leaves) {
    return boundaries_[{slot.chunk, slot.micro_batch, slot.pass == Pass::kForward, leaves}];
  }
  Cell& saved(const Slot& slot, std::int32_t block, bool on_host) {
    return saved_[{slot.chunk, slot.micro_batch, block, on_host}];
  }

  void pass(const RunPass& run) {
    const Slot& slot = run.slot;
    const bool forward = slot.pass == Pass::kForward;
    const auto blocks =
        static_cast<std::int32_t>(role_.chunks[static_cast<std::size_t>(slot.chunk)].blocks.size());
    const bool begins = forward ? run.block_begin == 0 : run.block_end == blocks;
    const bool ends = forward ? run.block_end == blocks : run.block_begin == 0;
    const bool weights = slot.pass == Pass::kWeightGradient;
    if (begins && !weights && boundary(slot, false).writer != kUnused) {
      read(boundary(slot, false), "what it has received");
    }
    const bool completes = slot.pass == Pass::kBackward || weights;
    for (std::int32_t b = run.block_begin; b < run.block_end; ++b) {
      each_of_block(slot.chunk, b, [&](std::size_t s) {
        if (!weights) {
          read(at(in_window_[s] ? kGathered : kParameters, s), "these parameters");
        }
        if (forward) return;  // gradients of norms come with the input gradients
        write(at(kGradients, s));
        if (completes) state_[s] = {true, true};
      });
      Cell& own = saved(slot, b, false);
      if (forward) {
        bear(own);
      } else if (!weights) {
        read(own, "what its forward has saved");
      }
    }
    if (ends && !weights) bear(boundary(slot, true));
  }

  void block(std::int32_t i, const RunBlock& run) {
    switch (run.kind) {
      case BlockKind::kZeroGradients:
        return each([&](std::size_t s) {
          write(at(kGradients, s));
          write(at(kReduced, s));
        });
      case BlockKind::kCastGradients: {  // for the reduction behind it
        const auto next = static_cast<std::size_t>(i) + 1;
        const auto* call = next < role_.instructions.size()
                               ? role_.instructions[next].as<CollectiveCall>()
                               : nullptr;
        if (call == nullptr) return fail("no reduction follows");
        return each(call->elements, [&](std::size_t s) { write(at(kGradients, s)); });
      }
      case BlockKind::kGradientNorm:
        read_gradients();
        return write(norm_);
      case BlockKind::kUpdate:
        read_gradients();
        read(norm_, "the norm of the gradients");
        for (Cell& piece : pieces_[kArrived]) {  // in this step
          if (piece.writer >= now_ - i) read(piece, "what has come back");
        }
        return each([&](std::size_t s) { write(at(kParameters, s)); });
      default:
        return;
    }
  }

  void read_gradients() {
    each([&](std::size_t s) {
      read(at(kGradients, s), "these gradients");
      read(at(kReduced, s), "these gradients");
      expect_reduced(s);
    });
  }
  void expect_reduced(std::size_t s) {
    const AxisGroup group = group_[s];
    const Reduction& own = state_[s];
    const bool missing = (own.inner && grid_.group_size(group.inner()) > 1) ||
                         (own.outer && grid_.group_size(group.outer()) > 1);
    if (missing) {
      fail(fmt::format("gradients of elements {} to {} are used before they are reduced",
                       bounds_[s], bounds_[s + 1]));
    }
  }

  void collective(const Instruction& what, const CollectiveCall& call) {
    switch (call.purpose) {
      case Purpose::kGradients:
        return each(call.elements, [&](std::size_t s) { reduce(what, call, s); });
      case Purpose::kParameters:
        return each(call.elements, [&](std::size_t s) { gather(what, s); });
      case Purpose::kReplicatedGradients:
        return each([&](std::size_t s) { change_gradients(s); });
      case Purpose::kTiedTable:
        return each(call.elements, [&](std::size_t s) { change_gradients(s); });
      case Purpose::kGradientNorm:
        read(norm_, "the norm of the gradients");
        return write(norm_);
      case Purpose::kBoundary:
        read(boundary(call.slot, false), "what it gathers");
        return write(boundary(call.slot, false));
    }
  }
  void change_gradients(std::size_t s) {
    if (has_left_[s]) return;  // see the header
    read(at(kGradients, s), "these gradients");
    write(at(kGradients, s));
    write(at(kReduced, s));
  }
  // Passes add to gradients of their own where these lie in windows, and to all that there are
  // where they are kept. The sum of a copy lies where its gradients do, until the other copies'
  // have joined it.
  void reduce(const Instruction& what, const CollectiveCall& call, std::size_t s) {
    const bool has_copies =
        call.group.is_inner() && grid_.group_size(call.group.whole().outer()) > 1;
    if (!call.group.is_outer()) {
      read(at(kGradients, s), "these gradients");
      write(at(kGradients, s));
      state_[s] = {false, call.group.is_inner() && state_[s].outer};
    } else {
      read(at(kSummed, s), "the sum of a copy");
      if (!has_window_[s]) write(at(kGradients, s));
      if (state_[s].inner && grid_.group_size(group_[s].inner()) > 1) {
        fail("copies are summed before the ranks of a copy");
      }
      state_[s].outer = false;
    }
    if (has_copies) return bear(at(kSummed, s));
    // A sum that leaves for the host has a buffer of its own.
    if (total(what.birth) > 0) {
      has_left_[s] = true;
      bear(at(kReduced, s));
    } else {
      write(at(kReduced, s));
    }
  }
  void gather(const Instruction& what, std::size_t s) {
    if (at(kArrived, s).writer != kUnused) read(at(kArrived, s), "what has come back");
    read(at(kParameters, s), "these parameters");
    if (!in_window_[s]) return write(at(kParameters, s));
    if (total(what.birth) > 0) {
      bear(at(kGathered, s));
    } else {
      write(at(kGathered, s));
    }
  }

  void move(const ActivationCopy& copy) {
    const bool leaves = copy.direction == CopyDirection::kToHost;
    for (std::int32_t b = copy.block_begin; b < copy.block_end; ++b) {
      read(saved(copy.slot, b, !leaves), "what it copies");
      bear(saved(copy.slot, b, leaves));
    }
  }

  template <class Visit>
  void each_piece(Kind kind, const StatePart& part, Visit&& visit) {
    for (std::int32_t p = 0; p < kMostPieces; ++p) {
      if (part.count > 1 && p != part.index) continue;
      visit(pieces_[kind][static_cast<std::size_t>(p)]);
    }
  }
  void move(const Instruction& what, const StateCopy& copy) {
    const ElementRange& elements = copy.part.elements;
    if (copy.direction == CopyDirection::kToHost) {
      each(elements, [&](std::size_t s) {
        read(at(kReduced, s), "what it copies");
        read(at(kGradients, s), "what it copies");
        expect_reduced(s);
      });
      // Copies of several ranges meet in all pieces, and add to each other's neighbours.
      each_piece(kOnHost, copy.part, [&](Cell& piece) { write(piece); });
      return;
    }
    // Units come back one by one, and else what the host has updated does, piece by piece.
    each_piece(kHostUpdated, copy.part, [&](Cell& piece) {
      if (piece.writer != kUnused) read(piece, "what the host has updated");
    });
    if (total(what.birth) > 0) {
      each(elements, [&](std::size_t s) { bear(at(kArrived, s)); });
    } else {
      each_piece(kArrived, copy.part, [&](Cell& piece) { write(piece); });
    }
  }
  void update_on_host(const HostUpdate& update) {
    read(norm_, "the norm of the gradients");
    each_piece(kOnHost, update.part, [&](Cell& piece) { read(piece, "gradients on the host"); });
    each_piece(kHostUpdated, update.part, [&](Cell& piece) { write(piece); });
  }

  const Program& program_;
  const Role& role_;
  const RankGrid& grid_;
  std::vector<std::int64_t> bounds_;  // of segments of flat elements, which are used as one
  std::array<std::vector<Cell>, kKinds> elements_;  // by kind and segment
  std::array<std::vector<Cell>, kKinds> pieces_;
  std::vector<Reduction> state_;  // by segment
  std::vector<bool> in_window_;   // by segment: its parameters are used where they are gathered
  std::vector<bool> has_window_;  // and its gradients are in one
  std::vector<bool> has_left_;    // and their sum goes to the host as it is made
  std::vector<AxisGroup> group_;  // by segment
  std::map<std::tuple<std::int32_t, std::int32_t, bool, bool>, Cell> boundaries_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>, Cell> saved_;
  Cell norm_;
  bool is_steady_ = false;
  std::int32_t now_ = 0;
  std::array<std::int32_t, kStreams> needs_{};  // by stream: the latest that must have ended
  DataFlow out_;
};

}  // namespace

DataFlow data_flow(const Program& program, const Role& role, const RankGrid& grid) {
  return Flow(program, role, grid).find();
}

std::string describe(const Role& role, std::int32_t instruction) {
  const Instruction& what = role.instructions[static_cast<std::size_t>(instruction)];
  std::string out = fmt::format("stage {}: {}, number {}", role.stage, what.name, instruction);
  if (what.slot() != nullptr) {
    out += fmt::format(" (micro-batch {}, chunk {})", what.slot()->micro_batch, what.slot()->chunk);
  }
  return out;
}

}  // namespace stepcast
