// SPDX-License-Identifier: Apache-2.0
// Optimizer states that lie in host memory (layout.offload), with the gradients and weights that a
// processor updates there, in fp32. Places are those among the rank's elements that its host
// updates.
#pragma once

#include <memory>
#include <vector>

#include "execute/storage.h"

namespace stepcast {

class HostStates {
 public:
  HostStates(std::int64_t elements, Memory& memory);

  Array weights(std::int64_t place) const { return weights_->array().from(place); }
  Array gradients(std::int64_t place) const { return gradients_->array().from(place); }

  // Adds gradients of a later micro-batch.
  void add(Array more, std::int64_t place, std::int64_t count);
  double squares(std::int64_t place, std::int64_t count) const;  // of gradients
  // `squared_norm` as of Kernels::adamw(), in host memory.
  void update(std::int64_t place, std::int64_t count, std::int64_t step, const float* squared_norm);

 private:
  std::unique_ptr<Kernels> kernels_;  // of the processor
  Tensor weights_, gradients_, moment1_, moment2_;
};

}  // namespace stepcast
