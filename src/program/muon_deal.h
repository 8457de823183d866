// SPDX-License-Identifier: Apache-2.0
// How data ranks deal Muon's matrices to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "program/muon.h"

namespace stepcast {

// Megatron-LM (megatron/core/optimizer/layer_wise_optimizer.py): whole matrices are dealt bucket by
// bucket, the most costly first, each to the rank with the least to do whose shard has room. Every
// shard of a bucket is padded to the largest.
class MatrixDeal {
 public:
  explicit MatrixDeal(std::int64_t ranks)
      : costs_(static_cast<std::size_t>(ranks)), matrices_(static_cast<std::size_t>(ranks)) {}

  void bucket(std::vector<MuonMatrix> own);
  std::int64_t padded() const { return padded_; }
  const std::vector<MuonMatrix>& busiest() const;

 private:
  std::size_t choose(const std::vector<std::int64_t>& sizes, std::int64_t more, double room) const;

  std::vector<double> costs_;
  std::vector<std::vector<MuonMatrix>> matrices_;
  std::int64_t padded_ = 0;
};

// DeepSpeed's zero 1 and 2 (runtime/zero/stage_1_and_2.py, get_flat_partition): the matrices lie
// one behind the other, the largest first (muon/original_muon.py sorts them), and are cut into
// equal partitions. A rank works on each matrix that its partition has a part of, and keeps the
// momentum of all of it.
void deal_touched(std::vector<MuonMatrix> all, std::int64_t ranks, MuonShare& share);

// DeepSpeed's zero 3 (runtime/zero/stage3.py, _apply_muon_to_accumulated_grads): gradients and
// momentum of so many elements are gathered, matrices go round the ranks, and results and momentum
// are gathered again after each round, which the last of its matrices fills.
void deal_in_turns(std::vector<MuonMatrix> all, std::int64_t ranks, std::int64_t most,
                   MuonShare& share);

// torchtitan (distributed/flex_shard/dist_muon.py): a bucket's shards go to one owner of each
// matrix, which is chosen by cost, and the results come back. Two buckets are under way at once.
// A rank's experts are dealt in equal runs, and stay where they are if there is one for each rank.
void deal_to_owners(const std::vector<std::vector<MuonMatrix>>& buckets, std::int64_t ranks,
                    MuonShare& share);

}  // namespace stepcast
