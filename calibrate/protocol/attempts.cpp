// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/attempts.h"

#include <fmt/format.h>

#include "core/json_tree.h"

namespace stepcast {
namespace {

std::string attempt_of(const std::string& key) { return "attempts: " + key; }

Json known(const Journal& journal, const std::string& key) {
  const JournalPoint* point = journal.find(attempt_of(key));
  return point == nullptr ? Json::object() : point->extra;
}

Result<void> keep(Journal& journal, const std::string& key, const Json& what) {
  return journal.append({attempt_of(key), {}, what});
}

}  // namespace

std::optional<std::string> Attempts::why_not(const std::string& key) const {
  const Json before = known(journal_, key);
  if (const auto failed = before.find("failed"); failed != before.end()) {
    return failed->get<std::string>();
  }
  if (before.value("begun", 0) < kMost) return std::nullopt;
  return fmt::format("its process has ended {} times while it was measured", kMost);
}

Result<void> Attempts::begin(const std::string& key) {
  return keep(journal_, key, {{"begun", known(journal_, key).value("begun", 0) + 1}});
}

Result<void> Attempts::fail(const std::string& key, const std::string& why) {
  return keep(journal_, key, {{"failed", why}});
}

}  // namespace stepcast
