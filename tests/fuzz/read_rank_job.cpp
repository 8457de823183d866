// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/job.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void read_rank_job(std::string_view text) {
  with_document(text, [](JsonDocument& document) { say_errors_of(read_job(document)); });
}

}  // namespace stepcast::fuzz
