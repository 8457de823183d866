// SPDX-License-Identifier: Apache-2.0
// Muon (Jordan et al. 2024): the momentum of each matrix of a layer is made orthogonal by five
// iterations of Newton and Schulz; tables, the head's matrix, norms and biases stay with AdamW.
//
// Data ranks deal the matrices to each other in one of four ways (MuonDeal, layout/scenario.h).
// With Megatron's a matrix that tensor parallelism cuts is gathered and worked on by every tensor
// rank (duplicated), worked on in parts that sum their products (distributed), handed to one home
// rank (layer), or taken for as many matrices (blockwise).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/states.h"
#include "program/block_builder.h"

namespace stepcast {

struct Program;
struct Role;
struct Scenario;

inline constexpr int kNewtonSchulzSteps = 5;  // muon_num_ns_steps, ns_steps

// A matrix as the model has it, and the tensor ranks that it is cut over.
struct MuonMatrix {
  std::int64_t rows, columns;  // before tensor parallelism
  Cut cut;
  std::int64_t ranks;        // 1: it is whole
  std::int64_t stacked = 1;  // matrices of its parameter: experts

  std::int64_t elements() const { return rows * columns; }
  std::int64_t local() const { return elements() / ranks; }
  std::int64_t shorter() const { return rows < columns ? rows : columns; }
  std::int64_t longer() const { return rows < columns ? columns : rows; }
  double cost() const;  // max(m, n) min(m, n)^2, by which Megatron deals them
  // All iterations take so many, by steps or on the product of the matrix with itself.
  double operations() const;
  double operations_on_gram() const;
};

// Matrices that data ranks exchange together. `arrives`: elements of the message that brings them
// to those who work on them, and `leaves`: of the one that takes the results away. 0: none.
struct MuonBucket {
  std::vector<MuonMatrix> work;  // of the rank that has most to do
  std::int64_t elements = 0;     // of all of its matrices
  std::int64_t arrives = 0, leaves = 0;
};

// The matrices of a role that one group of ranks reduces and shards.
struct MuonShare {
  MuonStates states;
  std::vector<MuonMatrix> of_busiest;  // of the data rank that has most to do
  std::vector<MuonBucket> buckets;     // where ranks exchange them, in the order of the update

  // Elements that pad the shards of all `ranks`, which deal whole matrices.
  std::int64_t padding(std::int64_t ranks) const {
    return ranks * states.updated - states.elements;
  }
};

// Empty with another optimizer.
std::vector<MuonShare> muon_shares(const Scenario& scenario, const Program& program,
                                   const Role& role);

// The update of the matrices of the busiest rank goes to the pass at hand.
void write_muon(const Scenario& scenario, const std::vector<MuonShare>& shares,
                BlockBuilder& builder);

// Bytes that the update of a matrix takes beside the states, at most.
ByteCount muon_workspace(const Scenario& scenario, const std::vector<MuonShare>& shares);
// And what a framework reserves for it once and for all.
ByteCount reserved_for_muon(const Scenario& scenario, const MuonShare& share);

}  // namespace stepcast
