// SPDX-License-Identifier: Apache-2.0
#include "program/block.h"

namespace stepcast {

std::span<const Pass> passes_of(BackwardForm form) {
  static constexpr std::array kWhole{Pass::kForward, Pass::kBackward};
  static constexpr std::array kSplit{Pass::kForward, Pass::kInputGradient, Pass::kWeightGradient};
  if (form == BackwardForm::kSplit) return kSplit;
  return kWhole;
}

}  // namespace stepcast
