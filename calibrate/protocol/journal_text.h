// SPDX-License-Identifier: Apache-2.0
// Reads what the text of a journal holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "calibrate/protocol/journal.h"
#include "core/json_field.h"
#include "core/json_tree.h"
#include "core/result.h"

namespace stepcast {

// The first line of a journal.
struct JournalHeader {
  static constexpr std::int64_t kFormat = 2;
  static constexpr const char* kMark = "stepcast_journal";
  std::int64_t format = kFormat;
  Json machine = Json::object();  // the facts of the machine whose points these are

  void check(const JsonValue& value) const;

  static auto fields() {
    using F = JournalHeader;
    return std::tuple{json_field(kMark, &F::format).required().within(kFormat, kFormat),
                      json_field("machine", &F::machine).required()};
  }
};

struct JournalText {
  JournalHeader header;
  std::map<std::string, JournalPoint> points;
  std::int64_t whole_bytes = 0;  // up to the end of the last line that is whole; 0: no header yet
};

// Every bad line is an error.
Result<JournalText> read_journal(const std::string& text, const std::string& file);

}  // namespace stepcast
