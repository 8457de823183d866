// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters beside a frozen matrix (Hu et al. 2021, arXiv 2106.09685):
//   y += scale (x A^T) B^T
// with A [rank, inputs] and B [outputs, rank] of each part of a packed layer. They read and write
// the model's type.
//
// Tensor parallelism cuts the half on the side on which the matrix is cut: B of a layer cut by
// outputs, A of one cut by inputs. The other half is whole on each rank and sees a part of the
// features: products stay partial sums like those of the matrix, and share its collectives; its
// gradients are summed once a step (arrange_update). With sequence parallelism each rank drops from
// its own rows of what is gathered, and keeps those.
#pragma once

#include <array>
#include <cstdint>

#include "operation/expert_parts.h"
#include "operation/layer_parts.h"
#include "program/block_builder.h"

namespace stepcast {

// Buffers of a packed layer, one for each part; parts without an adapter have none.
using PartBuffers = std::array<BufferId, 3>;

// forward() makes these, and backward reads them.
struct AdapterOutputs {
  PartBuffers narrow;         // x A^T
  PartBuffers wide;           // x A^T B^T
  PartBuffers dropped, mask;  // what is left of x, where adapters drop some of it
};

// input_gradient() makes these, and weight_gradient() reads them.
struct AdapterGradients {
  PartBuffers scaled;  // gradient of the adapter's output
  PartBuffers narrow;  // and of x A^T
};

class Adapters {
 public:
  Adapters() = default;
  // Puts adapters beside `matrix`: [outputs, inputs] on this rank, cut by rows or columns; none if
  // the scenario trains none. They are reduced and sharded over the ranks that hold the matrix.
  Adapters(BlockBuilder& builder, const Parameter& matrix, std::int64_t tokens);
  // Beside the matrices of `experts` experts, `matrix` of them all: one adapter for each, whose
  // products run as one kernel, or with 1 one that they share. `rows`: of all of them together.
  static Adapters of_experts(BlockBuilder& builder, const Parameter& matrix, std::int64_t experts,
                             std::int64_t rows);

  bool any() const { return parts_.front().down.valid(); }

  // Adds their outputs to `y`.
  AdapterOutputs forward(BlockBuilder& builder, BufferId x, BufferId y) const {
    return forward(builder, x, {{y, y, y}, {y, y, y}});
  }
  // Adds them to what the matrix made of each part.
  struct Sums {
    PartBuffers of, to;  // the same ones: in place; those without `to` are not made
  };
  AdapterOutputs forward(BlockBuilder& builder, BufferId x, const Sums& sums) const {
    return write(builder, x, sums, nullptr, {});
  }
  // Makes again what torchtitan_op drops. A layer's three products count one after the other: where
  // that of the matrix `stays`, so does the wide one, and the narrow one is dropped, or else these
  // two change places.
  AdapterOutputs make_again(BlockBuilder& builder, BufferId x, const Sums& sums,
                            const AdapterOutputs& saved, const std::array<bool, 3>& stays) const {
    return write(builder, x, sums, &saved, stays);
  }
  // Adds their gradients of the input to `x_gradient`.
  AdapterGradients input_gradient(BlockBuilder& builder, BufferId y_gradient, BufferId x_gradient,
                                  const AdapterOutputs& saved) const;
  void weight_gradient(BlockBuilder& builder, BufferId x, const AdapterOutputs& saved,
                       const AdapterGradients& gradients) const;

 private:
  struct Part {
    std::size_t index = 0;
    std::int64_t outputs = 0;
    ParameterId down, up;
  };
  template <class Visit>
  void each(const Visit& visit) const;

  AdapterOutputs write(BlockBuilder& builder, BufferId x, const Sums& sums,
                       const AdapterOutputs* saved, const std::array<bool, 3>& stays) const;
  void declare(BlockBuilder& builder, const Parameter& matrix, Part& part);
  bool drops(const BlockBuilder& builder) const;
  Dropout dropout(const BlockBuilder& builder, bool backward) const;
  void multiply(BlockBuilder& builder, const char* name, GemmRole role, std::int64_t outputs,
                std::int64_t inputs, BufferId from, BufferId to) const;
  void weight_gradient(BlockBuilder& builder, const char* name, ParameterId weight,
                       std::int64_t outputs, std::int64_t inputs, BufferId gradient,
                       BufferId x) const;

  std::int64_t experts_ = 1;  // each with an adapter of its own
  std::int64_t inputs_ = 0, tokens_ = 0, rank_ = 0;
  std::int64_t own_rows_ = 0;  // of its inputs, which the rank drops from
  std::array<Part, 3> parts_{};
};

}  // namespace stepcast
