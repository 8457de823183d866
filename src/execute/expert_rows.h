// SPDX-License-Identifier: Apache-2.0
// Places the rows of one layer of experts on a rank, once it is known how many rows every rank has
// for every expert (docs/moe.md, "In the executor"). On the rank that sends them rows lie expert by
// expert. On the one that receives them they lie rank by rank, and on each as they were; products
// read them sorted by expert, and of an expert as they came.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "program/expert_shape.h"

namespace stepcast {

// A rank among those that tokens are dispatched among.
struct ExpertPlace {
  std::int64_t rank = 0;    // place among the ranks that experts are dealt to
  std::int64_t tensor = 0;  // place among the ranks that share one expert
};

class ExpertRows {
 public:
  // `counts`: rows of the rank (rank, tensor) for an expert are at
  // [(rank * shape.tensor + tensor) * shape.experts + expert]. Throws std::runtime_error where a
  // rank receives more than the program has room for: all ranks do so at once.
  ExpertRows(const ExpertShape& shape, ExpertPlace place, std::vector<std::int64_t> counts);

  std::int64_t sent() const { return sent_.back().end; }
  std::int64_t received() const { return received_.back().end; }
  // Which rows go to a rank that holds experts, and which come from it.
  const std::vector<Slice>& sent_to() const { return sent_; }
  const std::vector<Slice>& received_from() const { return received_; }
  // Every rank sends every other as many.
  bool is_even() const { return is_even_; }

  // Begins of each expert's rows among those that products read, for the experts of this rank, and
  // last the end of them all.
  const std::vector<std::int64_t>& begins() const { return begins_; }
  std::int64_t rows() const { return begins_.back(); }
  // Place of each of those rows among the rows as they came.
  const std::vector<std::int64_t>& order() const { return order_; }

 private:
  std::int64_t count(ExpertPlace from, std::int64_t expert) const;
  std::int64_t count_to(ExpertPlace from, std::int64_t rank) const;
  void expect_room() const;
  void sort();

  ExpertShape shape_;
  ExpertPlace place_;
  std::vector<std::int64_t> counts_, begins_, order_;
  std::vector<Slice> sent_, received_;
  bool is_even_ = true;
};

}  // namespace stepcast
