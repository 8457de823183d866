// SPDX-License-Identifier: Apache-2.0
#include "acceptance/threshold_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr const char* kMark = "stepcast_acceptance";

std::optional<CollectiveKind> kind_named(const std::string& name) {
  for (int i = 0; i < kCollectiveKinds; ++i) {
    if (name == name_of(static_cast<CollectiveKind>(i))) return static_cast<CollectiveKind>(i);
  }
  return std::nullopt;
}

Json collective_object(const CollectiveThreshold& one) {
  Json out;
  out["collective"] = name_of(one.kind);
  out["group"] = one.group;
  out["ranks"] = one.ranks;
  out["nodes"] = one.nodes;
  out["bytes"] = one.bytes;
  out["share_of_step"] = one.share;
  out["predicted_bus_bytes_per_s"] = one.forecast_bus_bytes_per_s;
  out["least_bus_bytes_per_s"] = one.least_bus_bytes_per_s;
  out["command"] = one.command;
  return out;
}

// Reads the keys of one object, and keeps what is wrong with them.
class Keys {
 public:
  Keys(const SortedJson& object, std::string path, const std::string& file, Errors& errors)
      : object_(object.is_object() ? object : empty()),
        path_(std::move(path)),
        file_(file),
        errors_(errors) {}

  double number(const char* key) {
    const auto found = object_.find(key);
    const bool fits = found != object_.end() && found->is_number() &&
                      std::isfinite(found->get<double>()) && found->get<double>() > 0;
    if (!fits) fail(key, "is no number above zero", "a file that stepcast export wrote");
    return fits ? found->get<double>() : 1;
  }
  std::int64_t count(const char* key) {
    const double value = number(key);
    if (value <= 1e15 && value == std::floor(value)) return static_cast<std::int64_t>(value);
    fail(key, "is no whole number", "a count");
    return 1;
  }
  std::string text(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_string()) return found->get<std::string>();
    fail(key, "is no text", "a file that stepcast export wrote");
    return "";
  }
  void fail(const char* key, std::string message, std::string hint) {
    errors_.push_back(
        {ErrorCode::kBadValue, std::move(message), file_, path_ + key, std::move(hint)});
  }

 private:
  static const SortedJson& empty() {
    static const SortedJson none = SortedJson::object();
    return none;
  }
  const SortedJson& object_;
  std::string path_;
  const std::string& file_;
  Errors& errors_;
};

}  // namespace

Written threshold_file(const Thresholds& thresholds) {
  Json out;
  out[kMark] = 1;
  out["gpus"] = thresholds.gpus;
  out["global_batch"] = thresholds.global_batch;
  out["sequence_length"] = thresholds.sequence;
  out["predicted_step_time_s"] = thresholds.forecast_step_s;
  out["most_step_time_s"] = thresholds.most_step_s;
  out["least_tokens_per_s"] = thresholds.least_tokens_per_s;
  out["collectives"] = Json::array();
  for (const CollectiveThreshold& one : thresholds.collectives) {
    out["collectives"].push_back(collective_object(one));
  }
  out["scenario"] = thresholds.scenario;
  return json_file(out, 2);
}

std::string threshold_script(const Thresholds& thresholds) {
  std::string out =
      "#!/usr/bin/env bash\n"
      "# Measures with nccl-tests what acceptance.json asks for; run it where mpirun and the "
      "tests\n"
      "# are on PATH, keep what it prints, and judge it: stepcast check acceptance.json --results "
      "FILE\n"
      "set -euo pipefail\n";
  for (const CollectiveThreshold& one : thresholds.collectives) {
    out += fmt::format("\n# {} over {} ({} ranks, {} nodes): at least {:.4g} GB/s busbw\n{}\n",
                       name_of(one.kind), in_comment(one.group), one.ranks, one.nodes,
                       one.least_bus_bytes_per_s / 1e9, one.command);
  }
  return out;
}

bool is_threshold_file(const std::string& text) {
  return text.find(fmt::format("\"{}\"", kMark)) != std::string::npos;
}

Result<Thresholds> read_threshold_file(const std::string& text, const std::string& file) {
  const auto document = parse_json(text, file);
  if (!document) return failure(document.error());
  auto ordered = parse_ordered_json(text, file);
  if (!ordered) return failure(ordered.error());
  const bool is_ours = document->is_object() && document->contains(kMark);
  if (!is_ours || !((*document)[kMark] == 1)) {
    return failure({ErrorCode::kFormat, "is no file of thresholds of format 1", file, kMark,
                    "stepcast export --to acceptance"});
  }
  Errors errors;
  Thresholds out;
  Keys keys(*document, "", file, errors);
  out.gpus = keys.count("gpus");
  out.global_batch = keys.count("global_batch");
  out.sequence = keys.count("sequence_length");
  out.forecast_step_s = keys.number("predicted_step_time_s");
  out.most_step_s = keys.number("most_step_time_s");
  out.least_tokens_per_s = keys.number("least_tokens_per_s");
  const auto list = document->find("collectives");
  if (list == document->end() || !list->is_array()) {
    keys.fail("collectives", "is no list", "a file that stepcast export wrote");
  } else {
    int place = 0;
    for (const SortedJson& one : *list) {
      const std::string path = fmt::format("collectives[{}].", place++);
      Keys part(one, path, file, errors);
      CollectiveThreshold threshold;
      const auto kind = kind_named(part.text("collective"));
      if (!kind) part.fail("collective", "is no collective", "all_reduce, all_gather and others");
      threshold.kind = kind.value_or(CollectiveKind::kAllReduce);
      threshold.group = part.text("group");
      threshold.ranks = part.count("ranks");
      threshold.nodes = part.count("nodes");
      threshold.bytes = part.count("bytes");
      threshold.share = part.number("share_of_step");
      threshold.forecast_bus_bytes_per_s = part.number("predicted_bus_bytes_per_s");
      threshold.least_bus_bytes_per_s = part.number("least_bus_bytes_per_s");
      threshold.command = part.text("command");
      out.collectives.push_back(std::move(threshold));
    }
  }
  if (document->contains("scenario")) out.scenario = (*ordered)["scenario"];
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
