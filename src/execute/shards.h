// SPDX-License-Identifier: Apache-2.0
// Which flat elements a rank owns: its slice of every range that is reduced or gathered together
// by the group of ranks that hold the same ones. One list for a role; everything where nothing is
// sharded.
#pragma once

#include <utility>
#include <vector>

#include "core/id.h"
#include "program/element_range.h"

namespace stepcast {

class RankGrid;
struct CollectiveCall;
struct Role;

struct OwnedPiece {
  ElementRange range;   // flat elements of the role
  std::int64_t offset;  // of the first one among the owned ones
};

// The equal parts in which a call moves its elements, one collective each.
std::vector<ElementRange> pieces_of(const CollectiveCall& call);

// Gradients that every data rank keeps a shard of.
bool scatters_gradients(const CollectiveCall& call);

class Shards {
 public:
  Shards() = default;
  // `sharded` false: every rank owns everything.
  Shards(const Role& role, bool sharded, const RankGrid& grid, RankId rank);

  const std::vector<OwnedPiece>& pieces() const { return pieces_; }  // ascending
  std::int64_t elements() const { return elements_; }
  // Owned parts of `range`.
  std::vector<OwnedPiece> within(ElementRange range) const;
  std::int64_t offset_of(std::int64_t element) const;  // of an owned one

  // A fraction of them, from the begin of each piece, and the rest.
  std::pair<Shards, Shards> split(double fraction) const;

 private:
  void add(ElementRange range);

  std::vector<OwnedPiece> pieces_;
  std::int64_t elements_ = 0;
};

ElementRange common(ElementRange a, ElementRange b);  // empty where they do not meet

}  // namespace stepcast
