// SPDX-License-Identifier: Apache-2.0
#include "program/muon_deal.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

namespace stepcast {
namespace {

// layer_wise_optimizer.py: a shard may exceed the mean by so much.
constexpr double kMostOfMean = 1.3;

std::int64_t elements_of(const std::vector<MuonMatrix>& matrices) {
  return std::accumulate(
      matrices.begin(), matrices.end(), std::int64_t{0},
      [](std::int64_t sum, const MuonMatrix& matrix) { return sum + matrix.elements(); });
}

void largest_first(std::vector<MuonMatrix>& matrices) {
  std::ranges::stable_sort(matrices, std::greater(), [](const MuonMatrix& matrix) {
    return std::pair(matrix.rows, matrix.columns);
  });
}

void add_to(std::vector<MuonMatrix>& out, const std::vector<MuonMatrix>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

// Matrices of a bucket by the rank that owns them.
class Owners {
 public:
  explicit Owners(std::int64_t ranks)
      : own_(static_cast<std::size_t>(ranks)),
        costs_(own_.size()),
        sizes_(own_.size()),
        arrives_(own_.size()) {}

  // `before`: the cost of what each rank has owned of the buckets before, to which this one's is
  // added.
  void deal(std::vector<MuonMatrix> bucket, std::vector<double>& before);

  std::size_t ranks() const { return own_.size(); }
  double cost(std::size_t rank) const { return costs_[rank]; }
  MuonBucket bucket(std::size_t rank) const {
    const std::int64_t most = *std::ranges::max_element(arrives_);
    return {own_[rank], elements_, most, most};
  }

 private:
  void give(std::size_t rank, const MuonMatrix& matrix, bool travels) {
    own_[rank].push_back(matrix);
    costs_[rank] += matrix.operations();
    sizes_[rank] += matrix.elements();
    if (travels) arrives_[rank] += matrix.elements();
  }

  std::vector<std::vector<MuonMatrix>> own_;
  std::vector<double> costs_;
  std::vector<std::int64_t> sizes_, arrives_;
  std::int64_t elements_ = 0;
};

void Owners::deal(std::vector<MuonMatrix> bucket, std::vector<double>& before) {
  elements_ = elements_of(bucket);
  std::ranges::stable_sort(bucket, std::greater(), &MuonMatrix::operations);
  std::int64_t dealt = 0;  // of a stack
  for (const MuonMatrix& matrix : bucket) {
    const auto ranks = static_cast<std::int64_t>(own_.size());
    if (matrix.stacked > 1) {
      const std::int64_t run = (matrix.stacked + ranks - 1) / ranks;
      give(static_cast<std::size_t>(dealt++ % matrix.stacked / run), matrix,
           matrix.stacked < ranks);
      continue;
    }
    std::size_t best = 0;
    const auto load = [&](std::size_t rank) {
      return std::tuple(costs_[rank], sizes_[rank], before[rank]);
    };
    for (std::size_t rank = 1; rank < own_.size(); ++rank) {
      if (load(rank) < load(best)) best = rank;
    }
    give(best, matrix, ranks > 1);
    before[best] += matrix.operations();
  }
}

}  // namespace

void MatrixDeal::bucket(std::vector<MuonMatrix> own) {
  std::ranges::stable_sort(own, std::greater(), &MuonMatrix::cost);
  std::vector<std::int64_t> sizes(costs_.size(), 0);
  std::int64_t all = 0;
  for (const MuonMatrix& matrix : own) all += matrix.local();
  const double room = kMostOfMean * static_cast<double>(all) / static_cast<double>(sizes.size());
  for (const MuonMatrix& matrix : own) {
    const std::size_t rank = choose(sizes, matrix.local(), room);
    sizes[rank] += matrix.local();
    costs_[rank] += matrix.cost();
    matrices_[rank].push_back(matrix);
  }
  padded_ += *std::ranges::max_element(sizes);
}

const std::vector<MuonMatrix>& MatrixDeal::busiest() const {
  return matrices_[static_cast<std::size_t>(std::ranges::max_element(costs_) - costs_.begin())];
}

std::size_t MatrixDeal::choose(const std::vector<std::int64_t>& sizes, std::int64_t more,
                               double room) const {
  std::size_t best = 0;
  bool found = false;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const bool fits = sizes[rank] == 0 || static_cast<double>(sizes[rank] + more) <= room;
    if (!fits || (found && costs_[rank] >= costs_[best])) continue;
    best = rank;
    found = true;
  }
  if (found) return best;
  return static_cast<std::size_t>(std::ranges::min_element(sizes) - sizes.begin());
}

void deal_touched(std::vector<MuonMatrix> all, std::int64_t ranks, MuonShare& share) {
  largest_first(all);
  const std::int64_t partition = (share.states.elements + ranks - 1) / ranks;
  share.states.updated = partition;
  double most = -1;
  std::size_t begin = 0;      // the first matrix that reaches into the partition
  std::int64_t begin_at = 0;  // and where it lies
  for (std::int64_t rank = 0; rank < ranks && begin < all.size(); ++rank) {
    const std::int64_t from = rank * partition, to = from + partition;
    while (begin < all.size() && begin_at + all[begin].elements() <= from) {
      begin_at += all[begin++].elements();
    }
    std::int64_t at = begin_at, touched = 0;
    double cost = 0;
    std::size_t end = begin;
    for (; end < all.size() && at < to; ++end) {
      at += all[end].elements();
      touched += all[end].elements();
      cost += all[end].operations_on_gram();
    }
    share.states.moments = std::max(share.states.moments, touched);
    if (cost <= most) continue;
    most = cost;
    share.of_busiest.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void deal_in_turns(std::vector<MuonMatrix> all, std::int64_t ranks, std::int64_t most,
                   MuonShare& share) {
  largest_first(all);
  share.states.updated = share.states.moments = (share.states.elements + ranks - 1) / ranks;
  for (std::size_t next = 0; next < all.size();) {
    std::int64_t gathered = 0;
    std::size_t end = next;
    while (end < all.size() && (end == next || gathered + all[end].elements() <= most)) {
      gathered += all[end++].elements();
    }
    for (std::int64_t arrives = gathered; next < end; arrives = 0) {
      MuonBucket round{{all[next]}, 0, arrives, 0};
      std::int64_t turns = 0;
      for (; next < end && turns < ranks; ++turns, ++next) {
        MuonMatrix& busiest = round.work.front();
        if (all[next].operations_on_gram() > busiest.operations_on_gram()) busiest = all[next];
        round.elements += all[next].elements();
      }
      round.leaves = round.elements + (ranks - turns) * all[end - 1].elements();
      if (ranks == 1) round.arrives = round.leaves = 0;
      add_to(share.of_busiest, round.work);
      share.buckets.push_back(std::move(round));
    }
  }
}

void deal_to_owners(const std::vector<std::vector<MuonMatrix>>& buckets, std::int64_t ranks,
                    MuonShare& share) {
  constexpr std::size_t kSlots = 2;  // _optimizer_reshard_runtime.py: _NUM_PIPELINE_SLOTS
  share.states.updated = share.states.moments = (share.states.elements + ranks - 1) / ranks;
  std::vector<double> before(static_cast<std::size_t>(ranks));
  for (std::size_t first = 0; first < buckets.size(); first += kSlots) {
    std::vector<Owners> under_way;
    for (std::size_t b = first; b < std::min(first + kSlots, buckets.size()); ++b) {
      under_way.emplace_back(ranks).deal(buckets[b], before);
    }
    std::size_t busiest = 0;
    double most = -1;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
      double cost = 0;
      for (const Owners& owners : under_way) cost += owners.cost(rank);
      if (cost > most) busiest = rank;
      most = std::max(most, cost);
    }
    for (const Owners& owners : under_way) {
      share.buckets.push_back(owners.bucket(busiest));
      add_to(share.of_busiest, share.buckets.back().work);
    }
  }
}

}  // namespace stepcast
