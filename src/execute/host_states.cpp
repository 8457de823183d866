// SPDX-License-Identifier: Apache-2.0
#include "execute/host_states.h"

#include "kernels/cpu/cpu_kernels.h"

namespace stepcast {

HostStates::HostStates(std::int64_t elements, Memory& memory) : kernels_(make_cpu_kernels()) {
  const auto make = [&](MemoryCategory category) {
    return memory.make_on_host(category, elements, DataType::kFp32);
  };
  weights_ = make(MemoryCategory::kParameters);
  gradients_ = make(MemoryCategory::kGradients);
  moment1_ = make(MemoryCategory::kOptimizer);
  moment2_ = make(MemoryCategory::kOptimizer);
  for (const Tensor& moment : {moment1_, moment2_}) kernels_->fill(moment->array(), 0, elements);
}

void HostStates::add(Array more, std::int64_t place, std::int64_t count) {
  kernels_->accumulate(more, gradients(place), count);
}

double HostStates::squares(std::int64_t place, std::int64_t count) const {
  double sum = 0;
  kernels_->add_squares(gradients(place), count, &sum);
  return sum;
}

void HostStates::update(std::int64_t place, std::int64_t count, std::int64_t step,
                        const float* squared_norm) {
  kernels_->adamw({.step = step,
                   .squared_norm = squared_norm,
                   .gradient = gradients(place),
                   .weight = weights(place),
                   .moment1 = moment1_->array().from(place),
                   .moment2 = moment2_->array().from(place),
                   .count = count});
}

}  // namespace stepcast
