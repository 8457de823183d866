// SPDX-License-Identifier: Apache-2.0
// Which products of a layer have adapters, where there are some.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

enum class AdapterTarget : std::uint8_t { kQkv, kAttentionOut, kMlp };
struct AdapterTargets {
  std::vector<AdapterTarget> named;  // in the order in which a scenario names them; empty: all

  bool has(AdapterTarget target) const;
};

}  // namespace stepcast
