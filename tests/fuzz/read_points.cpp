// SPDX-License-Identifier: Apache-2.0

#include "calibrate/protocol/journal_text.h"
#include "core/json_tree.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void read_points(std::string_view text) {
  say_errors_of(read_journal(std::string(text), "journal"));
}

}  // namespace stepcast::fuzz
