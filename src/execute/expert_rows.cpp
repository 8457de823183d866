// SPDX-License-Identifier: Apache-2.0
#include "execute/expert_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/assert.h"

namespace stepcast {

ExpertRows::ExpertRows(const ExpertShape& shape, ExpertPlace place,
                       std::vector<std::int64_t> counts)
    : shape_(shape), place_(place), counts_(std::move(counts)) {
  STEPCAST_ASSERT(static_cast<std::int64_t>(counts_.size()) == shape.group() * shape.experts,
                  "a count for every rank and expert");
  expect_room();
  const std::int64_t each = count_to({0, place.tensor}, 0);
  for (std::int64_t rank = 0, sent = 0, received = 0; rank < shape_.ranks; ++rank) {
    const std::int64_t to = count_to(place_, rank);
    const std::int64_t from = count_to({rank, place_.tensor}, place_.rank);
    sent_.push_back({sent, sent + to});
    received_.push_back({received, received + from});
    sent += to;
    received += from;
    for (std::int64_t other = 0; other < shape_.ranks; ++other) {
      is_even_ = is_even_ && count_to({rank, place_.tensor}, other) == each;
    }
  }
  sort();
}

std::int64_t ExpertRows::count(ExpertPlace from, std::int64_t expert) const {
  const std::int64_t rank = from.rank * shape_.tensor + from.tensor;
  return counts_[static_cast<std::size_t>(rank * shape_.experts + expert)];
}

std::int64_t ExpertRows::count_to(ExpertPlace from, std::int64_t rank) const {
  std::int64_t sum = 0;
  for (std::int64_t e = rank * shape_.local; e < (rank + 1) * shape_.local; ++e) {
    sum += count(from, e);
  }
  return sum;
}

void ExpertRows::expect_room() const {
  for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
    for (std::int64_t tensor = 0; tensor < shape_.tensor; ++tensor) {
      std::int64_t sum = 0;
      for (std::int64_t from = 0; from < shape_.ranks; ++from) {
        sum += count_to({from, tensor}, rank);
      }
      if (sum <= shape_.received) continue;
      throw std::runtime_error(fmt::format(
          "the router sends {} rows to the experts of rank {} of {}, the program has room for {} "
          "(model.moe.imbalance): state an imbalance of {:.2f}, or let the seed choose experts",
          sum, rank, shape_.ranks, shape_.received,
          static_cast<double>(sum) / static_cast<double>(shape_.sent)));
    }
  }
}

// Rows received from each rank that shares the experts lie in places of equal size.
void ExpertRows::sort() {
  struct Stretch {
    std::int64_t begin, count;
  };
  std::vector<std::vector<Stretch>> of_expert(static_cast<std::size_t>(shape_.local));
  for (std::int64_t tensor = 0; tensor < shape_.tensor; ++tensor) {
    std::int64_t at = tensor * shape_.received;
    for (std::int64_t rank = 0; rank < shape_.ranks; ++rank) {
      for (std::int64_t e = 0; e < shape_.local; ++e) {
        const std::int64_t rows = count({rank, tensor}, place_.rank * shape_.local + e);
        of_expert[static_cast<std::size_t>(e)].push_back({at, rows});
        at += rows;
      }
    }
  }
  for (const std::vector<Stretch>& stretches : of_expert) {
    begins_.push_back(static_cast<std::int64_t>(order_.size()));
    for (const Stretch& stretch : stretches) {
      for (std::int64_t row = 0; row < stretch.count; ++row) order_.push_back(stretch.begin + row);
    }
  }
  begins_.push_back(static_cast<std::int64_t>(order_.size()));
}

}  // namespace stepcast
