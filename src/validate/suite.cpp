// SPDX-License-Identifier: Apache-2.0
#include "validate/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/data_name.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/unit_text.h"
#include "validate/documents.h"

namespace stepcast {
namespace {

constexpr std::int64_t kSuiteFormat = 1;
constexpr double kSmallest = 1e-12;  // measured figures are positive
constexpr double kLargest = 1e18;

std::vector<std::string> read_texts(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> out;
  const auto list = reader.value(key);
  if (!list) return out;
  for (const JsonValue& item : list->items()) {
    if (const auto text = item.text()) out.push_back(*text);
  }
  return out;
}

void read_peak(ObjectReader& reader, Convention& convention) {
  const auto value = reader.value("peak");
  if (!value) return;
  const auto text = value->text();
  if (!text || *text == "precision") return;
  if (*text == "bf16") {
    convention.bf16_peak = true;
    return;
  }
  const auto rate = parse_flops_rate(*text);
  if (rate && rate->value() > 0) {
    convention.peak = *rate;
  } else {
    value->fail(ErrorCode::kBadValue, fmt::format("'{}' is not accepted", *text),
                "precision, bf16 or a rate such as \"989 TFLOP/s\"");
  }
}

Convention read_convention(const JsonValue& value) {
  ObjectReader reader(value);
  Convention out;
  out.causal_attention = reader.choice("attention", {"full", "causal"}).value_or(0) == 1;
  out.logits = reader.boolean("logits").value_or(true);
  out.hardware_flops = reader.choice("flops", {"model", "hardware"}).value_or(0) == 1;
  read_peak(reader, out);
  out.memory = static_cast<Convention::Memory>(
      reader.choice("memory", {"allocated", "reserved", "device"}).value_or(0));
  out.steady_bubble = reader.choice("bubble", {"span", "steady"}).value_or(0) == 1;
  reader.finish();
  return out;
}

Measured read_measured(const JsonValue& value) {
  ObjectReader reader(value);
  Measured out;
  out.step_time_s = reader.number("step_time_s", kSmallest, kLargest);
  out.tokens_per_s_per_gpu = reader.number("tokens_per_s_per_gpu", kSmallest, kLargest);
  out.model_tflops_per_gpu = reader.number("model_tflops_per_gpu", kSmallest, kLargest);
  out.mfu = reader.number("mfu", kSmallest, 1);
  out.peak_memory_bytes = reader.number("peak_memory_bytes", 1, kLargest);
  out.bubble_fraction = reader.number("bubble_fraction", 0, 1);
  reader.finish();
  if (value.is_object() && value.raw().empty()) {
    value.fail(ErrorCode::kMissingKey, "a case needs one measured figure or more");
  }
  return out;
}

CaseLimits read_limits(ObjectReader& reader) {
  CaseLimits out;
  const auto value = reader.value("tolerance");
  if (!value) return out;
  ObjectReader limits(*value);
  out.step_time = limits.number("step_time", 0, kLargest);
  out.peak_memory = limits.number("peak_memory", 0, kLargest);
  out.bubble_fraction = limits.number("bubble_fraction", 0, 1);
  limits.finish();
  if (value->is_object() && value->raw().empty()) {
    value->fail(ErrorCode::kMissingKey, "limits nothing", "\"step_time\": 0.05");
  }
  return out;
}

bool gives_time(const Measured& measured) {
  return measured.step_time_s || measured.tokens_per_s_per_gpu || measured.model_tflops_per_gpu ||
         measured.mfu;
}

// A limit on what nobody measured would never be broken.
void check_limits(const SuiteCase& one, const JsonValue& value) {
  const auto demand = [&](bool limited, bool measured, const char* figure) {
    if (!limited || measured) return;
    value.fail(ErrorCode::kIllegal, fmt::format("limits {}, which it has not measured", figure),
               "leave the limit out, or state the figure under measured");
  };
  demand(one.limits.step_time.has_value(), gives_time(one.measured), "step_time");
  demand(one.limits.peak_memory.has_value(), one.measured.peak_memory_bytes.has_value(),
         "peak_memory");
  demand(one.limits.bubble_fraction.has_value(), one.measured.bubble_fraction.has_value(),
         "bubble_fraction");
}

// The suite's own limits, for the figures that a case has and does not limit itself.
void inherit_limits(const CaseLimits& of_suite, SuiteCase& one) {
  const auto inherit = [](std::optional<double>& own, const std::optional<double>& other,
                          bool measured) {
    if (!own && measured) own = other;
  };
  inherit(one.limits.step_time, of_suite.step_time, gives_time(one.measured));
  inherit(one.limits.peak_memory, of_suite.peak_memory, one.measured.peak_memory_bytes.has_value());
  inherit(one.limits.bubble_fraction, of_suite.bubble_fraction,
          one.measured.bubble_fraction.has_value());
}

// Everything that a case's figures depend on except its layout; labels are left out.
std::string group_of(const SortedJson& scenario) {
  SortedJson group;
  for (const char* key : {"model", "cluster", "training"})
    group[key] = scenario.value(key, SortedJson());
  if (group["model"].is_object()) group["model"].erase("name");
  if (group["training"].is_object()) group["training"].erase("software");
  return json_text(group);
}

SuiteCase read_case(const JsonValue& value) {
  ObjectReader reader(value);
  SuiteCase out;
  out.id = reader.required_text("id");
  out.source = reader.required_text("source");
  out.tags = read_texts(reader, "tags");
  out.assumed = read_texts(reader, "assumed");
  out.notes = reader.text("notes").value_or("");
  if (const auto convention = reader.value("convention")) {
    out.convention = read_convention(*convention);
  }
  if (const auto measured = reader.required("measured")) out.measured = read_measured(*measured);
  out.limits = read_limits(reader);
  check_limits(out, value);
  if (const auto scenario = reader.required("scenario")) {
    if (scenario->is_object()) {
      out.scenario = json_text(scenario->raw());
      out.group = group_of(scenario->raw());
    } else {
      scenario->fail(ErrorCode::kWrongType, "must be an object, not " + scenario->dump());
    }
  }
  reader.finish();
  return out;
}

}  // namespace

Result<Suite> read_suite(JsonDocument& document) {
  Suite out;
  out.file = document.file();
  ObjectReader reader(document.root());
  const auto format = reader.required("stepcast_suite");
  if (format && (!format->raw().is_number() || format->raw() != kSuiteFormat)) {
    reader.fail("stepcast_suite", ErrorCode::kFormat,
                format->dump() + " is not a format that is read",
                fmt::format("format {}", kSuiteFormat));
    return failure(document.errors());  // the keys of another format would only be noise
  }
  out.name = reader.text("name").value_or(std::filesystem::path(document.file()).stem().string());
  const CaseLimits limits = read_limits(reader);
  if (const auto cases = reader.required("cases")) {
    std::set<std::string> ids;
    for (const JsonValue& item : cases->items()) {
      out.cases.push_back(read_case(item));
      inherit_limits(limits, out.cases.back());
      const std::string& id = out.cases.back().id;
      if (!id.empty() && !ids.insert(id).second) {
        item.fail(ErrorCode::kBadValue, fmt::format("the id '{}' stands twice", id),
                  "ids are unique within a suite");
      }
    }
  }
  reader.finish();
  if (!document.ok()) return failure(document.errors());
  return out;
}

Result<Suite> load_suite(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  return read_suite(**document);
}

Result<std::string> suite_file(const std::string& name_or_path, const std::string& folder) {
  if (is_path(name_or_path)) return name_or_path;
  const auto shipped = data_names(folder);
  if (!shipped) return failure(shipped.error());
  if (std::ranges::find(*shipped, name_or_path) != shipped->end()) {
    return folder + "/" + name_or_path + ".json";
  }
  const std::string near = did_you_mean(name_or_path, *shipped);
  return failure({ErrorCode::kNotFound, fmt::format("there is no suite '{}'", name_or_path), "",
                  "SUITE", near.empty() ? "a file, all, " + one_of(*shipped) : near});
}

}  // namespace stepcast
