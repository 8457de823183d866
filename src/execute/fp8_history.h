// SPDX-License-Identifier: Apache-2.0
// The largest elements of what the casts of a rank have read, from which with recipe delayed the
// scales of the next step follow. As with a history of one step (Megatron-LM,
// --fp8-amax-history-len 1), largest over all its micro-batches, and over the ranks that share its
// tensors or its parameters (Transformer Engine, fp8.py: reduce_and_update_fp8_tensors).
#pragma once

#include <map>
#include <utility>

#include "execute/groups.h"
#include "execute/storage.h"
#include "operation/buffer.h"

namespace stepcast {

struct Program;
struct Role;

class Fp8History {
 public:
  // A cast's name in its role.
  struct Cast {
    std::size_t chunk, block;
    BufferId copy;  // the first that it writes
    auto operator<=>(const Cast&) const = default;
  };
  struct Figures {
    float* latest;        // of this step so far
    const float* before;  // of the step before
  };

  // Before the first step nothing is known. It reckons with 16 forward, and backward with 16 times
  // `loss_scale`, a token's share of the step's loss.
  Fp8History(const Program& program, const Role& role, float loss_scale, Memory& memory);

  Figures of(const Cast& cast) const;
  // All ranks call it at the same place.
  void end_step(const Groups& groups);

 private:
  Device& device_;
  std::map<Cast, std::size_t> places_;
  Tensor latest_, before_;
};

}  // namespace stepcast
