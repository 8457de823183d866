// SPDX-License-Identifier: Apache-2.0
// Reads what the text of a journal holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "calibrate/protocol/journal.h"
#include "core/json_fwd.h"
#include "core/json_tree.h"
#include "core/result.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The first line of a journal.
struct JournalHeader {
  static constexpr std::int64_t kFormat = 2;
  static constexpr const char* kMark = "stepcast_journal";
  std::int64_t format = kFormat;
  Json machine = Json::object();  // the facts of the machine whose points these are

  void check(const JsonValue& value) const;

  static Rows fields();
};

struct JournalText {
  JournalHeader header;
  std::map<std::string, JournalPoint> points;
  std::int64_t whole_bytes = 0;  // up to the end of the last line that is whole; 0: no header yet
};

// Every bad line is an error.
Result<JournalText> read_journal(const std::string& text, const std::string& file);

}  // namespace stepcast
