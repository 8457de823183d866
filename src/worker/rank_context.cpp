// SPDX-License-Identifier: Apache-2.0
#include "worker/rank_context.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/atomic_file.h"

namespace stepcast {

void write_result(const RankContext& rank, const nlohmann::ordered_json& result) {
  const std::string file = fmt::format("{}/rank-{}.json", rank.job.results, rank.world.rank());
  if (const auto written = write_file_atomically(file, result.dump() + "\n"); !written) {
    throw JobFailure(RankFailure::kInternal, to_string(written.error()));
  }
}

bool on_any_rank(const RankContext& rank, bool here) {
  float flag = here ? 1.0F : 0.0F;
  rank.world.all_reduce({&flag, 1}, Reduction::kMaximum);
  return flag > 0;
}

}  // namespace stepcast
