// SPDX-License-Identifier: Apache-2.0
// Muon (Jordan et al. 2024) as Megatron-LM has it (megatron/core/optimizer: emerging_optimizers.py,
// layer_wise_optimizer.py): the momentum of each matrix of a layer is made orthogonal by five
// iterations of Newton and Schulz; tables, the head's matrix, norms and biases stay with AdamW.
//
// Whole matrices are dealt to the data ranks, bucket by bucket, by the cost of their products;
// every shard of a bucket is padded to its largest. A matrix that tensor parallelism cuts is
// gathered and worked on by every tensor rank (duplicated), worked on in parts that sum their
// products (distributed), or handed to one home rank (layer).
#pragma once

#include <cstdint>
#include <vector>

#include "program/block_builder.h"
#include "program/program.h"

namespace stepcast {

// A matrix as the model has it, and the tensor ranks that it is cut over.
struct MuonMatrix {
  std::int64_t rows, columns;  // before tensor parallelism
  Cut cut;
  std::int64_t ranks;  // 1: it is whole

  std::int64_t elements() const { return rows * columns; }
  std::int64_t local() const { return elements() / ranks; }
  double cost() const;  // max(m, n) min(m, n)^2, by which they are dealt
};

// The matrices of a role that one group of ranks reduces and shards.
struct MuonShare {
  AxisGroup group;
  std::int64_t elements = 0;           // on this rank before they are dealt
  std::int64_t largest = 0;            // of a data rank, with what pads its shards
  std::vector<MuonMatrix> of_busiest;  // of the data rank that has most to do

  // Elements that pad the shards of all `ranks`.
  std::int64_t padding(std::int64_t ranks) const { return ranks * largest - elements; }
};

// Empty with another optimizer.
std::vector<MuonShare> muon_shares(const Scenario& scenario, const Program& program,
                                   const Role& role);

// The update of the matrices of the busiest rank goes to the pass at hand.
void write_muon(const Scenario& scenario, const std::vector<MuonShare>& shares,
                BlockBuilder& builder);

// Bytes that the update of a matrix takes beside the states, at most.
ByteCount muon_workspace(const std::vector<MuonShare>& shares);

}  // namespace stepcast
