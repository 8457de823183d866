// SPDX-License-Identifier: Apache-2.0
// A search may vary these: the keys of `layout` that their table (layout/keys.h) opens to it. The
// search walks them by number. By name, space.cpp knows those that decide the framework and dp, and
// launchable.cpp those that a release may lack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/keys.h"

namespace stepcast {

struct LayoutDimension : KeySearch {
  const char* path;    // "layout.tp"
  std::size_t key;     // its place among keys()
  std::int64_t usual;  // its value where nothing is set

  bool stated(const Stated& stated) const { return stated.keys[key]; }
  // Without a value the key is open again.
  void set(Stated& stated, std::optional<std::int64_t> value) const {
    put(stated, value.value_or(usual));
    stated.keys[key] = value.has_value();
  }
};

// Lists them in the order of the tree: what others depend on first, keys without dependants last.
const std::vector<LayoutDimension>& layout_dimensions();

}  // namespace stepcast
