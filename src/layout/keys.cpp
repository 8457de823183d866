// SPDX-License-Identifier: Apache-2.0
#include "layout/keys.h"

#include <algorithm>
#include <unordered_map>

#include "core/assert.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "layout/framework.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// Rules ask for stated keys at every layout of a search.
std::size_t place_of(std::string_view path) {
  static const auto places = [] {
    std::unordered_map<std::string_view, std::size_t> out;
    for (std::size_t i = 0; i < keys().size(); ++i) out.emplace(keys()[i]->path, i);
    return out;
  }();
  const auto found = places.find(path);
  STEPCAST_ASSERT(found != places.end(), "a key of the table");
  return found->second;
}

// "overlap.pp" of "layout.overlap.pp"
std::string_view inside_object(const Key& key) {
  const std::string_view path = key.path;
  return path.substr(path.find('.') + 1);
}

// "overlap" of "overlap.pp"; empty where the key stands in the object itself.
std::string_view inner_object(const Key& key) {
  const std::string_view path = inside_object(key);
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// The key's own name is the end of its path.
const char* name_in_object(const Key& key) {
  return std::string_view(key.path).substr(std::string_view(key.path).rfind('.') + 1).data();
}

void read_key(ObjectReader& object, const Key& key, Stated& out) {
  if (key.type->read(object, name_in_object(key), out)) out.mark(key.path);
}

// Settling walks these alone: most keys have a fixed default, which stands already.
struct Settling {
  struct Step {
    std::size_t place;
    void (*settle)(Scenario&, bool stated);
  };
  std::vector<Step> steps;
  std::bitset<Stated::kMostKeys> of_framework;
};

const Settling& settling() {
  static const Settling out = [] {
    Settling made;
    for (std::size_t i = 0; i < keys().size(); ++i) {
      if (keys()[i]->settle != nullptr) made.steps.push_back({i, keys()[i]->settle});
      made.of_framework[i] = keys()[i]->of_framework;
    }
    return made;
  }();
  return out;
}

}  // namespace

bool Stated::has(std::string_view path) const { return keys[place_of(path)]; }
void Stated::mark(std::string_view path) { keys[place_of(path)] = true; }

const std::vector<const Key*>& keys() {
  static const std::vector<const Key*> all = [] {
    std::vector<const Key*> out;
    for (const auto rows : {training_keys(), layout_keys()}) {
      for (const Key& key : rows) out.push_back(&key);
    }
    STEPCAST_ASSERT(out.size() <= Stated::kMostKeys, "a file's keys have room for all");
    return out;
  }();
  return all;
}

void read_keys(const JsonValue& value, std::span<const Key> keys, Stated& out) {
  ObjectReader object(value);
  for (std::size_t i = 0; i < keys.size();) {
    const std::string_view inner = inner_object(keys[i]);
    if (inner.empty()) {
      read_key(object, keys[i++], out);
      continue;
    }
    const auto found = object.value(inner);
    std::optional<ObjectReader> reader;
    if (found) reader.emplace(*found);
    for (; i < keys.size() && inner_object(keys[i]) == inner; ++i) {
      if (reader) read_key(*reader, keys[i], out);
    }
    if (reader) reader->finish();
  }
  object.finish();
}

SortedJson write_keys(const Scenario& scenario, std::span<const Key> keys) {
  SortedJson out = SortedJson::object();
  for (const Key& key : keys) {
    if (key.shown != nullptr && !key.shown(scenario)) continue;
    const std::string_view inner = inner_object(key);
    SortedJson& object = inner.empty() ? out : out[std::string(inner)];
    key.type->write(scenario, object[name_in_object(key)]);
  }
  return out;
}

void settle_keys(const Stated& stated, Scenario& scenario) {
  static_cast<Settings&>(scenario) = stated;
  for (const Settling::Step& step : settling().steps) {
    step.settle(scenario, stated.keys[step.place]);
  }
  scenario.rules = rules_of(scenario.training, scenario.layout);
  const GpuArchitecture architecture = scenario.cluster.spec.accelerator.architecture;
  if (!traits_of(architecture).has_one_queue) scenario.rules.async_tensor_backward = false;
  const auto overridden = stated.keys & settling().of_framework;
  if (overridden.none()) return;
  for (std::size_t i = 0; i < keys().size(); ++i) {
    if (overridden[i]) keys()[i]->type->copy(stated, scenario);
  }
}

}  // namespace stepcast
