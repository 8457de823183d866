// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_results.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void read_calibrated_rank(std::string_view text) {
  with_document(text, [](JsonDocument& document) {
    cli::RankResults results;
    results.read(document);
    if (!document.ok()) return;
    std::vector<MeasuredOperation> operations;
    std::vector<MeasuredCollective> collectives;
    results.move_to(operations, collectives);
  });
}

}  // namespace stepcast::fuzz
