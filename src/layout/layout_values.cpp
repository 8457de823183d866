// SPDX-License-Identifier: Apache-2.0
// The values of `layout` that are more than a number, a truth or a name.
#include "layout/layout_values.h"

#include <algorithm>

#include "core/json_tree.h"
#include "core/text_file.h"
#include "layout/axis_group.h"
#include "layout/balanced_layers.h"
#include "layout/choices.h"
#include "layout/key_types.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

RecomputedModules read_modules(const JsonValue& list) {
  const std::vector<std::string> known = recomputed_module_names();
  return {read_names<RecomputedModule>(
      list, known, [&](const JsonValue& item, const std::string& name) {
        std::string hint = "some of " + one_of(known);
        const std::string near = did_you_mean(name, known);
        if (!near.empty()) hint += "; " + near;
        item.fail(ErrorCode::kBadValue, fmt::format("'{}' is not a module", name), hint);
      })};
}

Recompute read_recompute_object(const JsonValue& value) {
  ObjectReader object(value);
  Recompute recompute;
  const auto stated = object.required("mode");
  const auto mode = stated ? object.choice("mode", recompute_mode_names()) : std::nullopt;
  if (mode) recompute.mode = static_cast<RecomputeMode>(*mode);
  recompute.layers = object.integer("layers", 1, kMostInKey).value_or(0);
  recompute.every = object.integer("every", 1, kMostInKey).value_or(1);
  if (const auto modules = object.value("modules")) {
    recompute.modules = read_modules(*modules);
    if (mode && recompute.mode != RecomputeMode::kSelective) {
      modules->fail(ErrorCode::kIllegal,
                    fmt::format("modules do not go with mode '{}'", name_of(recompute.mode)),
                    "mode selective takes modules");
    }
  }
  const bool narrowed = recompute.layers > 0 || recompute.every > 1;
  if (mode && recompute.mode == RecomputeMode::kNone && narrowed) {
    value.fail(ErrorCode::kIllegal, "layers and every do not go with mode 'none'",
               "mode selective or full");
  }
  object.finish();
  return recompute;
}

bool read_recompute(ObjectReader& layout, const char* key, Settings& out) {
  const auto value = layout.value(key);
  if (!value) return false;
  Recompute& recompute = out.layout.recompute;
  if (value->is_object()) {
    recompute = read_recompute_object(*value);
  } else if (const auto mode = layout.choice(key, recompute_mode_names())) {
    recompute.mode = static_cast<RecomputeMode>(*mode);
  }
  if (recompute.mode == RecomputeMode::kSelective && recompute.modules.named.empty()) {
    recompute.modules.named = {RecomputedModule::kCoreAttention};
  }
  return true;
}

void write_recompute(const Settings& settings, SortedJson& out) {
  const Recompute& r = settings.layout.recompute;
  out = {{"mode", name_of(r.mode)}};
  if (r.mode == RecomputeMode::kNone) return;
  if (r.layers > 0) out["layers"] = r.layers;
  out["every"] = r.every;
  if (r.mode == RecomputeMode::kSelective) out["modules"] = names_of(r.modules.named);
}

constexpr std::string_view kFile = "file:";

bool read_schedule(ObjectReader& object, const char* key, Settings& out) {
  const auto value = object.value(key);
  if (!value) return false;
  Layout& layout = out.layout;
  if (value->is_text() && value->text()->starts_with(kFile)) {
    layout.schedule = schedule_named("file");
    layout.schedule_file = value->text()->substr(kFile.size());
    if (layout.schedule_file.empty()) {
      value->fail(ErrorCode::kBadValue, "'file:' names no file", "write file:PATH");
    } else if (auto text = read_text_file(layout.schedule_file)) {
      layout.file_form = form_of_csv(*text);
      layout.schedule_text = std::make_shared<const std::string>(std::move(*text));
    } else if (const Error& why = text.error().front(); why.code != ErrorCode::kNotFound) {
      value->fail(why.code, fmt::format("'{}' {}", layout.schedule_file, why.message), why.hint);
    }
    return true;
  }
  const auto found = object.choice(key, schedule_names());
  if (!found) return false;
  layout.schedule = schedule_named(schedule_names()[*found]);
  return true;
}

void write_schedule(const Settings& settings, SortedJson& out) {
  const Layout& layout = settings.layout;
  const Schedule& schedule = rules_of(layout.schedule);
  out = schedule.from_file ? std::string(kFile) + layout.schedule_file : schedule.name;
}

void copy_schedule(const Settings& from, Settings& to) {
  to.layout.schedule = from.layout.schedule;
  to.layout.schedule_file = from.layout.schedule_file;
  to.layout.file_form = from.layout.file_form;
  to.layout.schedule_text = from.layout.schedule_text;
}

// A count from `least` on, or "all", which is kept as `all`.
template <std::int64_t Layout::*member, std::int64_t least, std::int64_t all>
bool read_count_or_all(ObjectReader& object, const char* key, Settings& out) {
  const auto value = object.value(key);
  if (!value) return false;
  if (value->is_text()) {
    out.layout.*member = all;
    return object.choice(key, {"all"}).has_value();
  }
  const auto count = object.integer(key, least, kMostInKey);
  out.layout.*member = count.value_or(0);
  return count.has_value();
}

template <std::int64_t Layout::*member, std::int64_t all>
void write_count_or_all(const Settings& settings, SortedJson& out) {
  if (const std::int64_t count = settings.layout.*member; count != all) {
    out = count;
  } else {
    out = "all";
  }
}

std::vector<std::string> words_of(std::string_view order) {
  std::vector<std::string> out;
  for_each_word(order, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

// "tp, cp, ep, dp and pp"
std::string usual_words() {
  std::vector<std::string> words = words_of(kUsualOrder);
  const std::string last = std::move(words.back());
  words.pop_back();
  return fmt::format("{} and {}", fmt::join(words, ", "), last);
}

bool read_order(ObjectReader& object, const char* key, Settings& out) {
  const auto order = object.text(key);
  if (!order) return false;
  std::vector<std::string> words = words_of(*order), usual = words_of(kUsualOrder);
  std::ranges::sort(words);
  std::ranges::sort(usual);
  if (words != usual) {
    object.fail(key, ErrorCode::kBadValue, fmt::format("'{}' is not an order", *order),
                fmt::format("{} once each, fastest first, as in {}", usual_words(), kUsualOrder));
    return false;
  }
  out.layout.order = *order;
  return true;
}

bool read_stage_layers(ObjectReader& object, const char* key, Settings& out) {
  const auto list = object.value(key);
  if (!list) return false;
  std::vector<std::int64_t>& layers = out.layout.stage_layers;
  if (list->is_text()) {
    const auto word = list->text();
    if (word && *word == "balanced") {
      layers = {kBalancedLayers};
      return true;
    }
    list->fail(ErrorCode::kBadValue, "is neither a list nor `balanced`",
               "one entry per model chunk, as in [9, 9, 8, 6]");
    return false;
  }
  for (const JsonValue& item : list->items()) {
    const auto count = item.integer();
    if (count && (*count < 0 || *count > kMostInKey)) {
      item.fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *count),
                fmt::format("0 to {}", kMostInKey));
    }
    layers.push_back(count.value_or(0));
  }
  if (list->is_array() && layers.empty()) {
    list->fail(ErrorCode::kBadValue, "the list is empty", "one entry per model chunk");
  }
  return true;
}

}  // namespace

const KeyType kRecompute = {read_recompute, write_recompute, copy_field<&Layout::recompute>,
                            [] { return one_of(recompute_mode_names()) + ", or an object"; }};
const KeyType kScheduleName = {read_schedule, write_schedule, copy_schedule, [] {
                                 std::vector<std::string> names = schedule_names();
                                 names.emplace_back("file:PATH");
                                 return one_of(names);
                               }};
const KeyType kShardGroup = {
    read_count_or_all<&Layout::shard_group, 1, 0>, write_count_or_all<&Layout::shard_group, 0>,
    copy_field<&Layout::shard_group>, [] { return std::string("1 or more, or `all`"); }};
const KeyType kDeferredHead = {read_count_or_all<&Layout::defer_head_wgrad, 0, kMostInKey>,
                               write_count_or_all<&Layout::defer_head_wgrad, kMostInKey>,
                               copy_field<&Layout::defer_head_wgrad>,
                               [] { return std::string("0 or more, or `all`"); }};
const KeyType kOrder = {read_order, write_field<&Layout::order>, copy_field<&Layout::order>,
                        [] { return usual_words() + " in some order"; }};
const KeyType kStageLayers = {read_stage_layers, write_field<&Layout::stage_layers>,
                              copy_field<&Layout::stage_layers>,
                              [] { return std::string("a list of counts, or `balanced`"); }};

}  // namespace stepcast
