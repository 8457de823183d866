// SPDX-License-Identifier: Apache-2.0
// Reads one of the two kinds of baselines, and says `what` a file is that has the other's key.
#pragma once

#include <string>

#include "core/read_rows.h"
#include "core/result.h"

namespace stepcast {

inline constexpr std::int64_t kBaselineFormat = 1;  // of both

template <class Kind>
Result<Kind> read_baseline_document(const std::string& text, const std::string& file,
                                    const char* key, const char* other_key, const char* what) {
  auto document = JsonDocument::parse(text, file);
  if (!document) return failure(document.error());
  ObjectReader reader((*document)->root());
  Kind out;
  if (reader.has(other_key)) {
    reader.fail(other_key, ErrorCode::kFormat, what);
  } else if (reader.is_format(key, kBaselineFormat)) {
    read_keys(reader, out);
    reader.finish();
  }
  if (!reader.ok()) return failure((*document)->errors());
  return out;
}

}  // namespace stepcast
