// SPDX-License-Identifier: Apache-2.0
#include "program/pass_pair.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/assert.h"

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

// A pass in five pieces. The ways to the experts and back begin and end with an exchange.
struct Pieces {
  std::span<const Operation> before, there, experts, back, rest;
};

Pieces cut(const std::vector<Operation>& pass) {
  using Difference = std::ptrdiff_t;
  const std::span<const Operation> all(pass);
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
  return {all.first(there), all.subspan(there, arrived - there),
          all.subspan(arrived, back - arrived), all.subspan(back, returned - back),
          all.subspan(returned)};
}

// One of the two passes among what is issued: each piece follows the one before it.
class Issuer {
 public:
  explicit Issuer(std::vector<Operation>& out) : out_(out) {}

  void compute(std::span<const Operation> piece) { add(piece, false); }
  void move(std::span<const Operation> piece) { add(piece, true); }

 private:
  void add(std::span<const Operation> piece, bool moves) {
    std::int32_t before = moves || moved_ ? last_ : -1;
    for (const Operation& operation : piece) {
      const auto place = static_cast<std::int32_t>(out_.size());
      Operation& own = out_.emplace_back(operation);
      for (std::int32_t& after : own.after) {
        if (after >= 0) after = places_[static_cast<std::size_t>(after)];
      }
      if (moves) own.stream = BlockStream::kCommunication;
      if (before >= 0) wait(own, before);
      if (moves || own.stream == BlockStream::kCompute) last_ = place;
      if (moves) before = place;
      places_.push_back(place);
    }
    moved_ = moves;
  }
  void wait(Operation& own, std::int32_t before) const {
    const auto stream = static_cast<std::size_t>(out_[static_cast<std::size_t>(before)].stream);
    own.after[stream] = std::max(own.after[stream], before);
  }

  std::vector<Operation>& out_;
  std::vector<std::int32_t> places_;  // by operation of the pass
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
                                     const std::vector<Operation>& backward) {
  const Pieces f = cut(forward), b = cut(backward);
  std::vector<Operation> out;
  out.reserve(forward.size() + backward.size());
  Issuer one(out), other(out);
  other.compute(b.before);
  other.move(b.there);
  one.compute(f.before);
  one.move(f.there);
  other.compute(b.experts);
  other.move(b.back);
  one.compute(f.experts);
  one.move(f.back);
  other.compute(b.rest);
  one.compute(f.rest);
  return out;
}

}  // namespace stepcast
