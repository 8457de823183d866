// SPDX-License-Identifier: Apache-2.0
// Reads a foreign JSON object key by key. Keys that nobody asked for are listed, not refused, and
// the word "auto" (which the Hugging Face Trainer fills in) counts as absent.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.h"
#include "recipes/imported_scenario.h"

namespace stepcast {

// The object that the text is; null after an error, which says line and column. DeepSpeed's files
// may hold comments.
SortedJson parse_json_object(const std::string& text, bool comments, ImportedScenario& imported);

class JsonKeys {
 public:
  // `path` is the object's own key path, "" for the root; what is no object is read as empty.
  JsonKeys(const SortedJson& object, std::string path, ImportedScenario& imported);

  bool has(const char* key);  // present, not null, not "auto"; counts as asked for
  std::optional<std::int64_t> integer(const char* key, std::int64_t min = 0);
  std::optional<double> number(const char* key);
  std::optional<bool> boolean(const char* key);
  std::optional<std::string> text(const char* key);
  std::optional<std::string> choice(const char* key, const std::vector<std::string>& names);
  // Sets the scenario's `path` to the count under `key`, from 1, where there is one.
  void set_count(const char* path, const char* key);
  JsonKeys section(const char* key);
  const SortedJson* raw(const char* key);  // nullptr when absent

  void without_effect(std::initializer_list<const char*> keys) {
    without_effect(std::span<const char* const>(keys.begin(), keys.size()));
  }
  void without_effect(std::span<const char* const> keys);
  void may_change_cost();  // whatever nobody has asked for
  bool said_auto() const { return said_auto_; }
  std::string path_of(std::string_view key) const;
  ImportedScenario& imported() { return *imported_; }

 private:
  const SortedJson* value(const char* key);
  void wrong(const char* key, const SortedJson& value, const char* accepted);

  const SortedJson* object_;
  std::string path_;
  ImportedScenario* imported_;
  std::set<std::string, std::less<>> asked_;
  bool said_auto_ = false;
};

}  // namespace stepcast
