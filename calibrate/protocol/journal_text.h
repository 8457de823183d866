// SPDX-License-Identifier: Apache-2.0
// Reads what the text of a journal holds.
#pragma once

#include <string>

#include "calibrate/protocol/journal.h"

namespace stepcast {

struct JournalText {
  std::string machine;  // the facts of the machine whose points these are, as JSON
  std::map<std::string, JournalPoint> points;
  std::int64_t whole_bytes = 0;  // up to the end of the last line that is whole; 0: no header yet
};

// Every bad line is an error.
Result<JournalText> read_journal(const std::string& text, const std::string& file);

}  // namespace stepcast
