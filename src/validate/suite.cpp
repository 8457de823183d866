// SPDX-License-Identifier: Apache-2.0
#include "validate/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/data_name.h"
#include "core/fnv1a.h"
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/text/escape.h"
#include "core/unit_text.h"
#include "validate/documents.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostTimes = 1000;  // of a collective: each becomes a case

// Everything that a case's figures depend on except its layout; labels are left out.
std::string group_of(const SortedJson& scenario) {
  SortedJson group;
  for (const char* key : {"model", "cluster", "training"})
    group[key] = scenario.value(key, SortedJson());
  if (group["model"].is_object()) group["model"].erase("name");
  if (group["training"].is_object()) group["training"].erase("software");
  return json_text(group);
}

// Tells what is forecast, without the profile that prices it.
std::string fingerprint_of(const SortedJson& scenario) {
  SortedJson stated;
  for (const char* key : {"model", "cluster", "training", "layout"}) {
    stated[key] = scenario.value(key, SortedJson());
  }
  // A collective is one of a library by version and environment, and has no step.
  if (stated["model"].is_null()) stated["software"] = scenario.value("software", SortedJson());
  return fmt::format("{:016x}", fnv1a(json_text(stated)));
}

void complete(SuiteCase& one, const std::string& publisher, const CaseErrors& of_suite) {
  if (one.publisher.empty()) one.publisher = publisher;
  if (one.scenario.is_object()) {
    if (one.collective.ranks == 0) one.group = group_of(one.scenario);
    one.fingerprint = fingerprint_of(one.scenario);
  }
  for (const JudgedFigure& figure : judged_figures()) {
    auto& limit = one.limits.*figure.error;
    if (!limit && figure.is_told_by(one.measured)) limit = of_suite.*figure.error;
  }
}

// A case for each size that was measured: what is summarised, limited and compared is a time.
std::vector<SuiteCase> by_size(SuiteCase one) {
  const std::vector<CollectiveTime> times = std::exchange(one.measured.times_us, {});
  std::vector<SuiteCase> out;
  for (const CollectiveTime& time : times) {
    SuiteCase& own = out.emplace_back(one);
    own.collective.bytes = time.bytes;
    own.id += "/" + size_text(time.bytes);
    own.measured = {.collective_time_s = time.time_us * 1e-6};
    own.tags.emplace_back(is_long_message(time.bytes) ? "16MiB-and-more" : "below-16MiB");
    own.tags.emplace_back(one.collective.table.empty() ? "held-out-table" : "held-out-size");
  }
  return out;
}

void split_by_size(std::vector<SuiteCase>& cases) {
  std::vector<SuiteCase> out;
  for (SuiteCase& one : cases) {
    if (one.collective.ranks == 0) {
      out.push_back(std::move(one));
    } else {
      for (SuiteCase& own : by_size(std::move(one))) out.push_back(std::move(own));
    }
  }
  cases = std::move(out);
}

}  // namespace

bool read_json(const JsonValue& value, StatedPeak& out) {
  const auto text = value.text();
  if (!text || *text == "precision") return text.has_value();
  out.bf16 = *text == "bf16";
  const auto rate = parse_flops_rate(*text);
  if (rate && rate->value() > 0) out.rate = *rate;
  if (out.bf16 || out.rate) return true;
  value.fail(ErrorCode::kBadValue, fmt::format("'{}' is not accepted", *text),
             "precision, bf16 or a rate such as \"989 TFLOP/s\"");
  return false;
}

void SuiteCase::check(const JsonValue& value) const {
  // A limit on what nobody measured would never be broken.
  for (const JudgedFigure& figure : judged_figures()) {
    if (!(limits.*figure.error) || figure.is_told_by(measured)) continue;
    value.fail(ErrorCode::kIllegal,
               fmt::format("limits {}, which it has not measured", figure.name),
               "leave the limit out, or state the figure under measured");
  }
  if (most_step_time_s && !measured.step_time_s && !measured.tokens_per_s_per_gpu &&
      !measured.out_of_memory) {
    value.fail(ErrorCode::kIllegal, "limits a step time, which it has not measured",
               "leave most_step_time_s out, or state measured.step_time_s");
  }
  if ((collective.ranks > 0) == measured.times_us.empty()) {
    value.fail(ErrorCode::kIllegal, "a collective has measured.times_us, and only a collective",
               "state collective and its times, or a figure of a step");
  }
  for (const JudgedFigure& figure : judged_figures()) {
    const bool of_step = figure.value != &CaseFigures::collective_time_s;
    if (collective.ranks == 0 || !of_step || !figure.is_told_by(measured)) continue;
    value.fail(ErrorCode::kIllegal,
               fmt::format("measured.{} stands beside the times of a collective", figure.name),
               "a figure of a step belongs into a case of its own");
  }
  if (measured.collective_time_s) {
    value.fail(ErrorCode::kIllegal, "the times of a collective are a list", "measured.times_us");
  }
  if (measured.times_us.size() > kMostTimes) {
    value.fail(ErrorCode::kBadValue, "has too many times of a collective",
               fmt::format("at most {} in a case", kMostTimes));
  }
  for (std::size_t i = 1; i < measured.times_us.size(); ++i) {
    if (measured.times_us[i - 1].bytes < measured.times_us[i].bytes) continue;
    value.fail(ErrorCode::kIllegal, "measured.times_us go by rising size", "");
  }
  if (!scenario.is_object() && !scenario.is_null()) {
    ObjectReader(value).fail("scenario", ErrorCode::kWrongType,
                             "must be an object, not " + json_text(scenario));
  }
}

Result<Suite> read_suite(JsonDocument& document) {
  Suite out;
  out.file = document.file();
  out.name = std::filesystem::path(document.file()).stem().string();
  ObjectReader reader(document.root());
  // The keys of another format would only be noise.
  if (!reader.is_format("stepcast_suite", 1)) return failure(document.errors());
  read_keys(reader, out);
  reader.finish();
  std::set<std::string> ids;
  for (std::size_t i = 0; i < out.cases.size(); ++i) {
    SuiteCase& one = out.cases[i];
    complete(one, out.publisher, out.limits);
    if (!one.id.empty() && !ids.insert(one.id).second) {
      document.add({ErrorCode::kBadValue, fmt::format("the id '{}' stands twice", one.id), "",
                    fmt::format("cases[{}]", i), "ids are unique within a suite"});
    }
  }
  if (!document.ok()) return failure(document.errors());
  split_by_size(out.cases);
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
                  "SUITE", near.empty() ? "a file, or one of " + one_of(*shipped) : near});
}

Rows Convention::fields() {
  using F = Convention;
  static constexpr Row all[] = {
      row<&F::causal_attention>("attention")
          .named(words<"full", "causal">)
          .says("FLOPs of attention are counted in full, or halved"),
      row<&F::logits>("logits").says("the output projection counts"),
      row<&F::hardware_flops>("flops")
          .named(words<"model", "hardware">)
          .says("FLOPs of the model, or with recomputed work"),
      row<&F::peak>("peak").says(
          "MFU is a share of this peak; that of the precision unless stated"),
      row<&F::memory>("memory").says(
          "memory of tensors, reserved by the allocator, or taken from the device"),
      row<&F::steady_bubble>("bubble")
          .named(words<"span", "steady">)
          .says("the bubble is over the span of a rank, or in the steady state")};
  return rows_of<F>(all);
}

Rows SuiteCase::fields() {
  using F = SuiteCase;
  static constexpr Row all[] = {
      row<&F::id>("id").required().says("unique within the suite"),
      row<&F::source>("source").required().says("where the run was reported"),
      row<&F::publisher>("publisher").says("who ran it; that of its suite unless stated"),
      row<&F::tags>("tags").says("for rows of the summary, `--tag` and `--without-tag`"),
      row<&F::assumed>("assumed").says(
          "what the source does not state and was filled in: key paths or free text"),
      row<&F::notes>("notes").says("for people"),
      row<&F::convention>("convention").says("how the source states its figures"),
      row<&F::measured>("measured").required().says("one or more of these figures"),
      row<&F::earlier>("earlier").says(
          "runs before it, the first first; `check` holds the run against the last"),
      row<&F::limits>("tolerance").says("what the errors of this case may be at most"),
      row<&F::most_step_time_s>("most_step_time_s")
          .positive()
          .says("a step of the run takes at most this, as `acceptance.json` demands"),
      row<&F::collective>("collective").says("a collective was measured, not a step"),
      row<&F::scenario>("scenario")
          .required()
          .says("a scenario, forecast as `predict` forecasts it: `check` fills nothing in; of a "
                "collective `cluster` and `software` alone")};
  return rows_of<F>(all);
}

Rows Suite::fields() {
  using F = Suite;
  static constexpr Row all[] = {
      row<&F::name>("name").says("the file's name unless stated"),
      row<&F::publisher>("publisher").says("who ran the cases that do not state theirs"),
      row<&F::limits>("tolerance")
          .says("limits of all cases that measured the figure and do not limit it themselves"),
      row<&F::cases>("cases").required().says("the recorded runs")};
  return rows_of<F>(all);
}

}  // namespace stepcast
