// SPDX-License-Identifier: Apache-2.0
// A module of multi-token prediction (DeepSeek-V3, section 2.2;
// megatron/core/transformer/multi_token_prediction.py): it joins the hidden state of a token with
// the embedding of a later one, runs a layer like the model's last, and has a loss of its own
// through the model's head. It stands on the stage of the head, in its block.
#pragma once

#include <vector>

#include "program/layer_lowering.h"
#include "program/linear.h"

namespace stepcast {

class PredictionModule {
 public:
  // `table`: the embedding's, or a copy of it that the stage holds. `ahead`: how many tokens later
  // the one is whose embedding it joins with.
  PredictionModule(const Scenario& scenario, ParameterId table, std::int64_t ahead,
                   BlockBuilder& builder);

  // Returns what the head's norm reads. `mode`: how the layer is recomputed.
  BufferId forward(BufferId hidden, RecomputeMode mode);
  void recompute();  // of a module that is recomputed whole
  // The gradient of `hidden`.
  BufferId backward(BufferId gradient, RecomputeMode mode);

 private:
  JoinColumns columns(bool backward) const;
  BufferId whole_rows(BufferId own);        // of the joined states, where tp cuts their product
  BufferId own_columns(BufferId gradient);  // of the gradient of those rows

  BlockBuilder& builder_;
  ParameterId table_;
  std::int64_t ahead_;
  std::vector<ParameterId> embedding_norm_, hidden_norm_;
  Linear join_;
  LayerLowering layer_;
  struct Saved {
    BufferId embedded, hidden, joined;
    LinearInput entered;
    LinearOutput projected;
  } saved_;
};

}  // namespace stepcast
