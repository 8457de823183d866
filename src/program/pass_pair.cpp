// SPDX-License-Identifier: Apache-2.0
#include "program/pass_pair.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/assert.h"
#include "operation/block_stream.h"
#include "operation/collective.h"
#include "operation/expert_parts.h"
#include "operation/operation.h"
#include "operation/phase.h"
#include "program/instruction.h"
#include "program/program.h"
#include "schedule/pass.h"

namespace stepcast {
namespace {

bool is_exchange(const Operation& operation) {
  const auto* collective = std::get_if<Collective>(&operation.work);
  return collective != nullptr && (collective->purpose == CollectivePurpose::kDispatch ||
                                   collective->purpose == CollectivePurpose::kCombine);
}

bool is_of_experts(const Operation& operation) {
  return std::holds_alternative<GroupedGemm>(operation.work);
}

// Some operations of a pass, by their places in it.
using Piece = std::vector<std::int32_t>;

// A pass in five pieces. The ways to the experts and back begin and end with an exchange. What may
// wait of the experts' stands apart: it holds up nothing of its pass.
struct Pieces {
  Piece before, there, experts, late, back, rest;
};

Pieces cut(const std::vector<Operation>& pass, bool delays_wgrad) {
  using Difference = std::ptrdiff_t;
  const auto at = [&](auto found) { return static_cast<std::size_t>(found - pass.begin()); };
  const std::size_t product = at(std::ranges::find_if(pass, is_of_experts));
  const auto middle = pass.begin() + static_cast<Difference>(product);
  const std::size_t there = at(std::find_if(pass.begin(), middle, is_exchange));
  const std::size_t back = at(std::find_if(middle, pass.end(), is_exchange));
  STEPCAST_ASSERT(there < product && back < pass.size(), "experts lie between two exchanges");
  std::size_t arrived = there, returned = back;
  for (std::size_t i = there; i < product; ++i) {
    if (is_exchange(pass[i])) arrived = i + 1;
  }
  for (std::size_t i = back; i < pass.size(); ++i) {
    if (is_exchange(pass[i])) returned = i + 1;
  }
  Pieces out;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    const bool may_wait = delays_wgrad && pass[i].phase == Phase::kWeightGradient;
    Piece& piece = i < there      ? out.before
                   : i < arrived  ? out.there
                   : i < back     ? (may_wait ? out.late : out.experts)
                   : i < returned ? out.back
                                  : out.rest;
    piece.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

// One of the two passes among what is issued: each piece follows the one before it.
class Issuer {
 public:
  Issuer(const std::vector<Operation>& pass, std::vector<Operation>& out)
      : pass_(pass), out_(out), places_(pass.size(), -1) {}

  void compute(const Piece& piece) { add(piece, false); }
  void move(const Piece& piece) { add(piece, true); }
  // The piece follows others of the computing stream, and no other piece follows it.
  void compute_late(const Piece& piece) {
    for (const std::int32_t i : piece) place(i);
  }

 private:
  void add(const Piece& piece, bool moves) {
    std::int32_t before = moves || moved_ ? last_ : -1;
    for (const std::int32_t i : piece) {
      const std::int32_t at = place(i);
      Operation& own = out_.back();
      if (moves) own.stream = BlockStream::kCommunication;
      if (before >= 0) wait(own, before);
      if (moves || own.stream == BlockStream::kCompute) last_ = at;
      if (moves) before = at;
    }
    moved_ = moves;
  }
  std::int32_t place(std::int32_t i) {
    const auto at = static_cast<std::int32_t>(out_.size());
    Operation& own = out_.emplace_back(pass_[static_cast<std::size_t>(i)]);
    for (std::int32_t& after : own.after) {
      if (after >= 0) after = places_[static_cast<std::size_t>(after)];
    }
    places_[static_cast<std::size_t>(i)] = at;
    return at;
  }
  void wait(Operation& own, std::int32_t before) const {
    const auto stream = static_cast<std::size_t>(out_[static_cast<std::size_t>(before)].stream);
    own.after[stream] = std::max(own.after[stream], before);
  }

  const std::vector<Operation>& pass_;
  std::vector<Operation>& out_;
  std::vector<std::int32_t> places_;  // by operation of the pass; -1: not issued
  std::int32_t last_ = -1;            // operation of the piece before
  bool moved_ = false;
};

}  // namespace

bool alternates(const Instruction& what) {
  const auto* pass = what.as<RunPass>();
  return pass != nullptr && pass->beside.has_value();
}

bool leads_pair(const Instruction& what) {
  return alternates(what) && what.as<RunPass>()->slot.pass != Pass::kForward;
}

RunPass partner_of(const Role& role, const RunPass& run) {
  const Chunk& chunk = role.chunks[static_cast<std::size_t>(run.beside->chunk)];
  return {*run.beside, 0, static_cast<std::int32_t>(chunk.blocks.size())};
}

bool has_exchanges(const std::vector<Operation>& pass) {
  return std::ranges::any_of(pass, is_exchange) && std::ranges::any_of(pass, is_of_experts);
}

std::vector<Operation> issue_in_turn(const std::vector<Operation>& forward,
                                     const std::vector<Operation>& backward, bool delays_wgrad) {
  const Pieces f = cut(forward, false), b = cut(backward, delays_wgrad);
  std::vector<Operation> out;
  out.reserve(forward.size() + backward.size());
  Issuer one(forward, out), other(backward, out);
  other.compute(b.before);
  other.move(b.there);
  one.compute(f.before);
  one.move(f.there);
  other.compute(b.experts);
  other.move(b.back);
  other.compute_late(b.late);
  one.compute(f.experts);
  one.move(f.back);
  other.compute(b.rest);
  one.compute(f.rest);
  return out;
}

}  // namespace stepcast
