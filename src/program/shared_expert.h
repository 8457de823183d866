// SPDX-License-Identifier: Apache-2.0
// The expert that every token visits: an MLP beside the routed ones, cut by tensor parallelism as
// dense layers are.
#pragma once

#include <vector>

#include "program/kept_products.h"
#include "program/linear.h"

namespace stepcast {

struct Scenario;

class SharedExpert {
 public:
  SharedExpert(const Scenario& scenario, BlockBuilder& builder);

  // Returns what is added to the routed experts' output. `kept`: of its own products.
  BufferId forward(BufferId input, const KeptProducts& kept = {}) {
    kept_ = kept;
    forward_up(input);
    return forward_down(input);
  }
  // Makes again what torchtitan_op drops, and if it `runs_on`, all up to what is added.
  BufferId make_again(BufferId input, bool runs_on);
  // The gradient of the input.
  BufferId backward(BufferId gradient, BufferId input) {
    backward_down(gradient, input);
    return backward_up(input);
  }

  // The halves of both, which run beside the exchanges of tokens there and back.
  void forward_up(BufferId input);
  BufferId forward_down(BufferId input);
  void backward_down(BufferId gradient, BufferId input);
  BufferId backward_up(BufferId input);
  void cast_input_again(bool again) { up_.cast_input_again(again); }

 private:
  std::int64_t ups() const { return halves() * ffn_; }
  std::int64_t halves() const { return model_.mlp == Mlp::kSwiglu ? 2 : 1; }
  std::int64_t last() const { return halves() + 1; }  // the number of its last product
  std::int64_t dropped() const { return kept_.dropped(ups(), halves()); }
  void activate();
  std::int64_t up_elements() const { return builder_.shape().tokens * ups(); }
  BufferId gated(BufferId input);
  Activation activation(bool backward) const;

  const Model& model_;
  BlockBuilder& builder_;
  std::int64_t ffn_;
  bool stores_in_fp8_;
  Linear up_, down_;
  ParameterId gate_;
  KeptProducts kept_;
  // Backward reads these of the latest forward.
  struct Saved {
    BufferId activated, output;
    BufferId up_fp8;  // the product's output while it waits, where it does so in fp8
    LinearInput entered, left;
    LinearOutput up, down;
  } saved_;
  BufferId up_gradient_;  // from one half of the backward to the other
};

}  // namespace stepcast
