// SPDX-License-Identifier: Apache-2.0
#include "memory/frozen_weights.h"

#include <cmath>

namespace stepcast {

ByteCount FrozenWeights::bytes(DataType plain_type) const {
  const double packed = std::ceil(kFourBitBytes * static_cast<double>(four_bit));
  return plain * size_of(plain_type) + in_fp8 + static_cast<ByteCount>(packed);
}

}  // namespace stepcast
