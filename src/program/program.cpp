// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <algorithm>

#include "core/assert.h"

namespace stepcast {

const FlatStretch* Role::stretch(AxisGroup group) const {
  const auto found = std::ranges::find(stretches, group, &FlatStretch::group);
  return found == stretches.end() ? nullptr : &*found;
}

AxisGroup Role::group_of(ElementRange range) const {
  for (const FlatStretch& stretch : stretches) {
    const bool inside = range.begin >= stretch.range.begin && range.end <= stretch.range.end;
    if (inside && range.size() > 0) return stretch.group;
  }
  STEPCAST_ASSERT(range.size() == 0, "a range lies in the stretch of one group");
  return AxisGroup::kData;
}

}  // namespace stepcast
