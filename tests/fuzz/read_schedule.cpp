// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "schedule/schedule.h"

namespace stepcast::fuzz {

// The first three bytes say how many stages, chunks and micro-batches there are. An order that is
// accepted is written and read back.
void read_schedule(std::string_view text) {
  if (text.size() < 3) return;
  const auto up_to = [&](std::size_t at, int most) {
    return 1 + static_cast<unsigned char>(text[at]) % most;
  };
  const Pipeline pipeline{up_to(0, 4), up_to(1, 2), up_to(2, 8),
                          text[2] < 'a' ? Placement::kStraight : Placement::kFolded};
  const auto orders = from_csv(std::string(text.substr(3)), pipeline, "order.csv");
  say_errors_of(orders);
  if (orders && !from_csv(to_csv(pipeline, *orders), pipeline, "")) __builtin_trap();
}

}  // namespace stepcast::fuzz
