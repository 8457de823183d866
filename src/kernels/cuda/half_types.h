// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of 16 bits as kernels keep them in memory. Plain C++: no toolkit is
// needed.
#pragma once

#include <cstdint>

namespace stepcast::cuda {

struct Bf16 {  // 8 bits of exponent, 7 of fraction
  std::uint16_t bits;
};
struct Fp16 {  // 5 bits of exponent, 10 of fraction
  std::uint16_t bits;
};

}  // namespace stepcast::cuda
