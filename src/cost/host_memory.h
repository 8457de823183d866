// SPDX-License-Identifier: Apache-2.0
// How fast the processors of a measured machine move what lies in its memory: an update of
// offloaded states, and copies (docs/offload.md).
#pragma once

#include <cstdint>
#include <tuple>

#include "core/json_field.h"
#include "core/quantity.h"
#include "cost/provenance.h"

namespace stepcast {

struct HostMemory {
  std::int64_t cores = 1;          // that updated at once
  BytesPerSecond update;           // read and written by an AdamW of fp32 states on all of them
  BytesPerSecond update_one_core;  // and on one
  BytesPerSecond copy_one_core;    // copied by one: it reads as many, and writes as many
  Provenance provenance = Provenance::kMeasured;

  bool operator==(const HostMemory&) const = default;

  static auto fields() {
    using F = HostMemory;
    const auto rate = [](const char* key, BytesPerSecond F::*member) {
      return json_field(key, member).required().with_unit().positive();
    };
    return std::tuple{json_field("provenance", &F::provenance).required(),
                      json_field("cores", &F::cores).required().within(1, 1 << 16),
                      rate("update", &F::update), rate("update_one_core", &F::update_one_core),
                      rate("copy_one_core", &F::copy_one_core)};
  }
};

}  // namespace stepcast
