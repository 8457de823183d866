// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/layout_dimension.h"

namespace stepcast {

const std::vector<LayoutDimension>& layout_dimensions() {
  static const std::vector<LayoutDimension> all = [] {
    std::vector<LayoutDimension> out;
    for (std::size_t i = 0; i < keys().size(); ++i) {
      const Key& key = *keys()[i];
      if (key.search == nullptr) continue;
      out.push_back({*key.search, key.path, i, key.search->of(Layout{})});
    }
    std::ranges::sort(out, {}, &LayoutDimension::level);
    return out;
  }();
  return all;
}

}  // namespace stepcast
