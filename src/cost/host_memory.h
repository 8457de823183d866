// SPDX-License-Identifier: Apache-2.0
// How fast the processors of a measured machine move what lies in its memory: an update of
// offloaded states, and copies (docs/offload.md).
#pragma once

#include <cstdint>

#include "core/quantity.h"
#include "cost/provenance.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct HostMemory {
  std::int64_t cores = 1;          // that updated at once
  BytesPerSecond update;           // read and written by an AdamW of fp32 states on all of them
  BytesPerSecond update_one_core;  // and on one
  BytesPerSecond copy_one_core;    // copied by one: it reads as many, and writes as many
  Provenance provenance = Provenance::kMeasured;

  bool operator==(const HostMemory&) const = default;

  static Rows fields();
};

}  // namespace stepcast
