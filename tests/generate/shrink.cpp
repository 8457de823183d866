// SPDX-License-Identifier: Apache-2.0
#include "generate/shrink.h"

#include <algorithm>

namespace stepcast::generate {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

// Every place of a document, what holds others before them.
void add_places(const json& value, const Pointer& at, std::vector<Pointer>& out) {
  if (!at.empty()) out.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) add_places(item, at / key, out);
  } else if (value.is_array()) {
    for (std::size_t i = value.size(); i-- > 0;) add_places(value[i], at / i, out);
  }
}

json without(json file, const Pointer& place) {
  json& holder = file.at(place.parent_pointer());
  if (holder.is_array()) {
    holder.erase(static_cast<std::size_t>(std::stoul(place.back())));
  } else {
    holder.erase(place.back());
  }
  return file;
}

json with(json file, const Pointer& place, json value) {
  file.at(place) = std::move(value);
  return file;
}

// Plain values that may stand in the place of a model or a cluster.
std::vector<json> plain_values(const Pointer& place) {
  if (place == Pointer("/model")) {
    return {json{{"layers", 2}, {"hidden", 64}, {"heads", 4}, {"vocab", 128}}, "gpt2",
            "llama-3.2-1b"};
  }
  if (place == Pointer("/cluster")) {
    std::vector<json> out;
    for (const int gpus : {1, 2, 4, 8, 16})
      out.push_back({{"base", "dgx-a100-80g"}, {"gpus", gpus}});
    return out;
  }
  return {};
}

std::vector<json> smaller_values(const json& value) {
  std::vector<json> out;
  if (!value.is_number_integer()) return out;
  const auto number = value.get<std::int64_t>();
  for (const std::int64_t less :
       {std::int64_t{1}, std::int64_t{2}, number / 4, number / 2, number - 1}) {
    if (less >= 1 && less < number) out.emplace_back(less);
  }
  return out;
}

class Shrinking {
 public:
  Shrinking(const LegalScenario& failing, const Property& property, int most_tries)
      : best_(failing), file_(json::parse(failing.text)), property_(property), tries_(most_tries) {
    Case c(failing);
    forecasts_ = c.forecast().has_value();
  }

  LegalScenario run() {
    while (replace_whole() || take_out() || make_smaller()) continue;
    return best_;
  }

 private:
  // Takes the file where it still fails.
  bool keeps(const json& file) {
    if (tries_-- <= 0) return false;
    LegalScenario tried = best_;
    tried.text = file.dump();
    auto scenario = read_text(tried.text);
    if (!scenario) return false;
    tried.scenario = std::move(*scenario);
    Case c(tried);
    if (ask(property_, c).kind != Verdict::kViolated) return false;
    if (c.forecast().has_value() != forecasts_) return false;
    best_ = std::move(tried);
    file_ = file;
    return true;
  }
  std::vector<Pointer> places() const {
    std::vector<Pointer> out;
    add_places(file_, Pointer(), out);
    return out;
  }

  bool replace_whole() {
    for (const Pointer& place : {Pointer("/model"), Pointer("/cluster")}) {
      for (const json& plain : plain_values(place)) {
        if (file_.at(place) == plain) break;
        const bool longer = plain.dump().size() >= file_.at(place).dump().size();
        if (!longer && keeps(with(file_, place, plain))) return true;
      }
    }
    return false;
  }
  bool take_out() {
    bool any = false;
    for (const Pointer& place : places()) {
      if (place == Pointer("/stepcast") || !file_.contains(place)) continue;
      any = keeps(without(file_, place)) || any;
    }
    return any;
  }
  bool make_smaller() {
    bool any = false;
    for (const Pointer& place : places()) {
      if (place == Pointer("/stepcast") || !file_.contains(place)) continue;
      for (const json& value : smaller_values(file_.at(place))) {
        if (!keeps(with(file_, place, value))) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  LegalScenario best_;
  json file_;
  const Property& property_;
  int tries_;
  bool forecasts_ = true;  // and the one that is left does it too
};

}  // namespace

LegalScenario shrunk(const LegalScenario& failing, const Property& property, int most_tries) {
  return Shrinking(failing, property, most_tries).run();
}

}  // namespace stepcast::generate
