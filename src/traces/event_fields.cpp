// SPDX-License-Identifier: Apache-2.0
#include "traces/event_fields.h"

#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

std::vector<std::int64_t> integers_of(const SortedJson& list) {
  std::vector<std::int64_t> out;
  if (!list.is_array()) return out;
  for (const SortedJson& one : list) {
    if (one.is_number_integer()) out.push_back(one.get<std::int64_t>());
  }
  return out;
}

}  // namespace

double event_number(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::int64_t event_id(const SortedJson& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

std::string event_text(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string event_thread(const SortedJson& event) {
  const auto part = [&](const char* key) {
    const auto found = event.find(key);
    return found == event.end() ? std::string() : json_text(*found);
  };
  return part("pid") + "/" + part("tid");
}

// A list, or the text of one.
std::vector<std::int64_t> event_ranks(const SortedJson& args) {
  const auto found = args.find("Process Group Ranks");
  if (found == args.end()) return {};
  if (!found->is_string()) return integers_of(*found);
  const auto list = parse_json(found->get_text(), "");
  return list ? integers_of(*list) : std::vector<std::int64_t>{};
}

const SortedJson& event_args(const SortedJson& event) {
  static const SortedJson kNone = SortedJson::object();
  const auto found = event.find("args");
  return found == event.end() || !found->is_object() ? kNone : *found;
}

std::vector<std::vector<std::int64_t>> event_dims(const SortedJson& args) {
  std::vector<std::vector<std::int64_t>> out;
  const auto dims = args.find("Input Dims");
  if (dims == args.end() || !dims->is_array()) return out;
  for (const SortedJson& one : *dims) out.push_back(integers_of(one));
  return out;
}

}  // namespace stepcast
