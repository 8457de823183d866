// SPDX-License-Identifier: Apache-2.0
// The NCCL that a run has, and what its environment tells NCCL: `software` of a scenario. Which
// version does what: cost/nccl_tuner.h (docs/collectives.md, "Versions").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/json_fwd.h"

namespace stepcast {

class JsonValue;

// By name in NCCL_ALGO and NCCL_PROTO; a set has a bit for each.
enum class NcclAlgorithm : std::uint8_t { kRing, kTree, kNvls, kNvlsTree, kPat };
enum class NcclProtocol : std::uint8_t { kLl, kLl128, kSimple };
enum class NcclFunction : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast };
inline constexpr std::size_t kNcclFunctions = 4;

struct NcclSettings {
  static constexpr std::int64_t kOldest = 18, kNewest = 30;  // 2.18 to 2.30

  std::string version;                // as stated: "2.21.5", "2024-04"; empty: not stated
  std::string algorithms, protocols;  // NCCL_ALGO, NCCL_PROTO
  std::int64_t max_channels = 0;      // NCCL_MAX_NCHANNELS; 0: not set
  std::int64_t min_ctas = 0;          // NCCL_MIN_CTAS; 0: not set
  std::optional<bool> nvls;           // NCCL_NVLS_ENABLE

  // These follow from the texts. A version that is newer than all known ones counts as the newest
  // of them.
  std::int64_t minor = 0;  // 21 of 2.21; 0: not stated
  bool is_newer = false;
  std::array<std::uint8_t, kNcclFunctions> may_run = {31, 31, 31, 31};
  std::array<std::uint8_t, kNcclFunctions> may_speak = {7, 7, 7, 7};

  bool empty() const {
    return version.empty() && algorithms.empty() && protocols.empty() && max_channels == 0 &&
           min_ctas == 0 && !nvls;
  }
  bool allows(NcclFunction function, NcclAlgorithm algorithm, NcclProtocol protocol) const {
    const auto f = static_cast<std::size_t>(function);
    return (may_run[f] >> static_cast<unsigned>(algorithm) & 1U) != 0 &&
           (may_speak[f] >> static_cast<unsigned>(protocol) & 1U) != 0;
  }
};

// Errors go to the value's document: a version before 2.18, words that NCCL does not know.
NcclSettings read_software(const JsonValue& value);
SortedJson to_json(const NcclSettings& settings);

}  // namespace stepcast
