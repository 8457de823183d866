// SPDX-License-Identifier: Apache-2.0
// A layout with the bounds of its forecast.
#pragma once

#include "core/quantity.h"
#include "plan/layout_choice.h"

namespace stepcast {

struct BoundedLayout {
  double bound_s = 0;          // of its step time
  ByteCount device_bytes = 0;  // no less than this
  LayoutChoice choice;

  // The fastest by bound first.
  bool operator<(const BoundedLayout& other) const {
    return bound_s != other.bound_s ? bound_s < other.bound_s : choice < other.choice;
  }
};

}  // namespace stepcast
