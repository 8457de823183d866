// SPDX-License-Identifier: Apache-2.0
// The expert that every token visits: an MLP beside the routed ones, cut by tensor parallelism as
// dense layers are.
#pragma once

#include <vector>

#include "program/linear.h"

namespace stepcast {

class SharedExpert {
 public:
  SharedExpert(const Scenario& scenario, BlockBuilder& builder);

  BufferId forward(BufferId input) {  // what is added to the routed experts' output
    forward_up(input);
    return forward_down(input);
  }
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

 private:
  std::int64_t ups() const;
  Activation activation(bool backward) const;

  const Model& model_;
  BlockBuilder& builder_;
  std::int64_t ffn_;
  Linear up_, down_;
  ParameterId gate_;
  // Backward reads these of the latest forward.
  struct Saved {
    BufferId activated, output;
    LinearInput entered, left;
    LinearOutput up, down;
  } saved_;
  BufferId up_gradient_;  // from one half of the backward to the other
};

}  // namespace stepcast
