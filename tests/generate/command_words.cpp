// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/atomic_file.h"
#include "core/text/escape.h"
#include "generate/shrink.h"
#include "layout/keys.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

constexpr std::size_t kLongCommand = 600;

// Writes a value as a flag reads it: JSON, else text.
std::string value_word(const json& value) {
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  return json::accept(text) ? value.dump() : text;
}

class Words {
 public:
  explicit Words(const std::string& text) : file_(json::parse(text)) {}

  std::vector<std::string> words() {
    file_.erase("stepcast");
    add_named("model", "--model");
    add_cluster();
    for (const Key* key : keys()) add_key(*key);
    if (const auto profile = take("/profile")) add("--profile", profile->get<std::string>());
    if (const auto run = take("/run")) add_sets("run", *run);
    for (const char* part : {"training", "layout"}) {
      if (file_.contains(part) && !has_values(file_[part])) file_.erase(part);
    }
    return file_.empty() ? words_ : std::vector<std::string>();
  }

 private:
  static bool has_values(const json& value) {
    if (!value.is_object()) return true;
    return std::ranges::any_of(value, [](const json& item) { return has_values(item); });
  }
  std::optional<json> take(const std::string& pointer) {
    const json::json_pointer place(pointer);
    if (!file_.contains(place)) return std::nullopt;
    json value = file_.at(place);
    file_.at(place.parent_pointer()).erase(place.back());
    return value;
  }
  void add(const std::string& flag, const std::string& value) {
    words_.push_back(flag);
    words_.push_back(value);
  }
  void add_sets(const std::string& path, const json& object) {
    if (object.empty()) add("--set", path + "={}");
    for (const auto& [key, value] : object.items()) {
      add("--set", path + "." + key + "=" + value_word(value));
    }
  }
  void add_named(const std::string& part, const std::string& flag) {
    const auto value = take("/" + part);
    if (!value) return;
    if (value->is_string()) {
      add(flag, value->get<std::string>());
    } else {
      add("--set", part + "=" + value->dump());
    }
  }
  void add_cluster() {
    json& cluster = file_["cluster"];
    if (!cluster.is_object() || !cluster.contains("base")) {
      return add_named("cluster", "--cluster");
    }
    add("--cluster", cluster["base"].get<std::string>());
    cluster.erase("base");
    for (const char* size : {"nodes", "gpus"}) {
      if (!cluster.contains(size)) continue;
      add(std::string("--") + size, cluster[size].dump());
      cluster.erase(size);
    }
    if (!cluster.empty()) add_sets("cluster", cluster);
    file_.erase("cluster");
  }
  void add_key(const Key& key) {
    std::string pointer = std::string("/") + key.path;
    std::ranges::replace(pointer, '.', '/');
    const auto value = take(pointer);
    if (!value) return;
    const std::string word = key.flag.text ? value->get<std::string>() : value_word(*value);
    if (key.flag.name != nullptr) {
      add(key.flag.name, word);
    } else {
      add("--set", fmt::format("{}={}", key.path, value_word(*value)));
    }
  }

  json file_;
  std::vector<std::string> words_ = {"predict"};
};

}  // namespace

std::vector<std::string> command_words(const LegalScenario& scenario) {
  return Words(scenario.text).words();
}

std::string command_line(const LegalScenario& scenario, const std::string& flags,
                         const std::string& folder, const std::string& name) {
  std::string out = "stepcast";
  const std::vector<std::string> words = command_words(scenario);
  for (const std::string& word : words) out += " " + shell_word(word);
  if (words.empty() || out.size() > kLongCommand) {
    const std::string file = fmt::format("{}/{}.json", folder, name);
    std::filesystem::create_directories(folder);
    const auto written = write_file_atomically(file, json::parse(scenario.text).dump(1) + "\n");
    if (!written) return to_string(written.error());
    out = "stepcast predict " + shell_word(file);
  }
  return flags.empty() ? out : out + " " + flags;
}

}  // namespace stepcast::generate
