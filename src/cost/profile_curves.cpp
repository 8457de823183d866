// SPDX-License-Identifier: Apache-2.0
#include "cost/profile_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/profile_forms.h"
#include "layout/choices.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

constexpr double kLargest = 1e6;

void read_number(ObjectReader& reader, const char* key, double& out, double low = 0,
                 double high = kLargest) {
  if (const auto value = reader.number(key, low, high)) out = *value;
}

Provenance read_provenance(ObjectReader& reader, const char* key, Provenance otherwise) {
  const auto index = reader.choice(key, provenance_names());
  return index ? static_cast<Provenance>(*index) : otherwise;
}

// Rows of numbers and names under named columns. Read from the raw document: a profile has
// thousands of cells, and a key path for each would cost more than the parse.
class SampleTable {
 public:
  SampleTable(ObjectReader& reader, std::vector<std::string> required) {
    const auto columns = reader.required("columns");
    const auto rows = reader.required("rows");
    if (!columns || !rows) return;
    std::vector<std::string> names;
    for (const JsonValue& item : columns->items()) names.push_back(item.text().value_or(""));
    width_ = names.size();
    for (const std::string& name : required) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        columns->fail(ErrorCode::kMissingKey, fmt::format("there is no column '{}'", name),
                      fmt::format("needs {}", one_of(required)));
      }
      columns_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    if (!rows->is_array()) {
      rows->items();  // reports the wrong type
      return;
    }
    rows_ = *rows;
  }

  std::size_t size() const { return rows_ ? rows_->raw().size() : 0; }

  // Cell of the `column`-th required column; reports what is no number of [low, high].
  double number(std::size_t row, std::size_t column, double low, double high) const {
    const SortedJson* cell = at(row, column);
    if (cell != nullptr && cell->is_number()) {
      const double value = cell->get<double>();
      if (value >= low && value <= high) return value;
    }
    report(row, cell, fmt::format("a number from {} to {}", low, high));
    return low;
  }
  std::int64_t count(std::size_t row, std::size_t column) const {
    const SortedJson* cell = at(row, column);
    if (cell != nullptr && cell->is_number_integer()) {
      const auto value = cell->get<std::int64_t>();
      if (value >= 1 && value <= ObjectReader::kMaxCount) return value;
    }
    report(row, cell, "a whole number of at least 1");
    return 1;
  }
  std::string text(std::size_t row, std::size_t column) const {
    const SortedJson* cell = at(row, column);
    if (cell != nullptr && cell->is_string()) return cell->get<std::string>();
    report(row, cell, "text");
    return "";
  }
  std::size_t choice(std::size_t row, std::size_t column,
                     const std::vector<std::string>& names) const {
    const SortedJson* cell = at(row, column);
    if (cell != nullptr && cell->is_string()) {
      const auto found = std::find(names.begin(), names.end(), cell->get_text());
      if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    }
    report(row, cell, one_of(names));
    return 0;
  }

 private:
  const SortedJson* at(std::size_t row, std::size_t column) const {
    const SortedJson& line = rows_->raw()[row];
    if (!line.is_array() || line.size() != width_ || columns_[column] >= width_) return nullptr;
    return &line[columns_[column]];
  }
  void report(std::size_t row, const SortedJson* cell, const std::string& accepted) const {
    if (columns_.empty()) return;
    const JsonValue line = rows_->items()[row];
    line.fail(ErrorCode::kBadValue,
              cell == nullptr ? fmt::format("the row has not {} cells", width_)
                              : fmt::format("{} is not accepted here", json_text(*cell)),
              accepted);
  }

  std::vector<std::size_t> columns_;
  std::size_t width_ = 0;
  std::optional<JsonValue> rows_;
};

constexpr double kTiny = 1e-6;

void read_gemm_samples(const JsonValue& value, GemmCurve& curve) {
  ObjectReader reader(value);
  curve.samples_provenance = read_provenance(reader, "provenance", Provenance::kMeasured);
  read_number(reader, "reach", curve.neighbourhood.reach, kTiny, 100);
  read_number(reader, "shrinkage", curve.neighbourhood.shrinkage, kTiny, 100);
  curve.neighbourhood.all_roles = reader.boolean("all_roles").value_or(false);
  const SampleTable table(reader,
                          {"role", "batch", "m", "n", "k", "output_bytes", "accumulate", "median"});
  curve.samples.reserve(table.size());
  for (std::size_t row = 0; row < table.size(); ++row) {
    GemmSample sample;
    sample.role = static_cast<GemmRole>(table.choice(row, 0, gemm_role_names()));
    sample.batch = table.count(row, 1);
    sample.m = table.count(row, 2);
    sample.n = table.count(row, 3);
    sample.k = table.count(row, 4);
    sample.output_bytes = table.count(row, 5);
    sample.accumulate = table.number(row, 6, 0, 1) > 0;
    sample.efficiency = table.number(row, 7, kTiny, 10);
    curve.samples.push_back(sample);
  }
  reader.finish();
}

void read_attention_samples(const JsonValue& value, AttentionVariant& variant) {
  ObjectReader reader(value);
  variant.samples_provenance = read_provenance(reader, "provenance", Provenance::kMeasured);
  const SampleTable table(
      reader, {"pass", "batch", "heads", "kv_heads", "sequence", "head_dim", "causal", "median"});
  for (std::size_t row = 0; row < table.size(); ++row) {
    AttentionSample sample;
    sample.backward = table.choice(row, 0, {"forward", "backward"}) == 1;
    sample.batch = table.count(row, 1);
    sample.heads = table.count(row, 2);
    sample.kv_heads = table.count(row, 3);
    sample.sequence = table.count(row, 4);
    sample.head_dim = table.count(row, 5);
    sample.causal = table.number(row, 6, 0, 1) > 0;
    sample.efficiency = table.number(row, 7, kTiny, 10);
    variant.samples.push_back(sample);
  }
  reader.finish();
}

void read_exact_samples(const JsonValue& value, Profile& profile) {
  ObjectReader reader(value);
  const SampleTable table(reader, {"signature", "mean", "deviation", "median", "p10", "p90"});
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto time = [&](std::size_t column, double least) {
      return table.number(row, column, least, kLargest);
    };
    const double mean = time(1, 1e-12), deviation = time(2, 0), middle = time(3, 0);
    const double body = (time(5, 0) - time(4, 0)) / kP10ToP90;
    const double variance = body * body;
    profile.exact[table.text(row, 0)] = {Seconds(mean),
                                         {variance, Seconds(std::max(0.0, mean - middle)),
                                          std::max(0.0, deviation * deviation - variance)}};
  }
  reader.finish();
}

// Reads a curve between processes by MPI, or between GPUs by NCCL.
void read_collective(ObjectReader& reader, Profile& profile) {
  if (!reader.required("transport")) return;
  if (reader.choice("transport", {"mpi", "nccl"}).value_or(0) == 0) {
    MpiCurve curve = read_mpi_curve(reader);
    if (!curve.samples.empty()) profile.mpi.push_back(std::move(curve));
    return;
  }
  MeasuredGroup measured = read_measured_group(reader);
  std::vector<CollectiveSample> samples;
  if (const auto rows = reader.required("samples")) {
    samples = read_collective_samples(*rows, Seconds(1));
  }
  if (samples.empty() || !reader.ok()) return;
  profile.nccl.emplace_back(std::move(measured), samples);
}

void read_gemm(ObjectReader& reader, const JsonValue& form, Profile& profile) {
  const auto precision = reader.choice("precision", {"bf16", "fp8", "fp32"}).value_or(0);
  GemmCurve curve;
  curve.fit = read_form<GemmFit>(form);
  curve.neighbourhood = profile.neighbourhood;
  curve.provenance = read_provenance(reader, "provenance", profile.provenance);
  if (const auto samples = reader.value("samples")) read_gemm_samples(*samples, curve);
  if (precision == 0) {
    profile.gemm = curve.fit;
    profile.gemm_samples = std::move(curve.samples);
    profile.gemm_samples_provenance = curve.samples_provenance;
    profile.neighbourhood = curve.neighbourhood;
  } else if (precision == 1) {
    profile.gemm_fp8 = std::move(curve);
  } else {
    profile.gemm_fp32 = std::move(curve);
  }
}

void read_grouped(ObjectReader& reader, const JsonValue& form, Profile& profile) {
  profile.grouped = read_form<GroupedFit>(form);
  profile.grouped_provenance = read_provenance(reader, "provenance", profile.provenance);
}

void read_attention(ObjectReader& reader, const JsonValue& form, Profile& profile) {
  AttentionVariant variant;
  variant.name = reader.required_text("kernel");
  variant.fit = read_form<AttentionFit>(form);
  variant.provenance = read_provenance(reader, "provenance", profile.provenance);
  if (reader.choice("precision", {"bf16", "fp32"}) == 1) variant.type = DataType::kFp32;
  if (const auto samples = reader.value("samples")) read_attention_samples(*samples, variant);
  for (const Framework framework : read_framework_list(reader)) {
    profile.attention_kernel[framework] = variant.name;
  }
  if (profile.attention_variants.empty()) profile.attention = variant.fit;
  profile.attention_variants.push_back(std::move(variant));
}

}  // namespace

std::vector<Framework> read_framework_list(ObjectReader& reader) {
  std::vector<Framework> out;
  const auto list = reader.value("frameworks");
  if (!list) return out;
  const std::vector<std::string> names = framework_names();
  for (const JsonValue& item : list->items()) {
    const std::string name = item.text().value_or("");
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      item.fail(ErrorCode::kBadValue, fmt::format("'{}' is no framework", name), one_of(names));
    } else {
      out.push_back(framework_named(name));
    }
  }
  return out;
}

const std::vector<std::string>& elementwise_kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (int kind = 0; kind < kMemoryBoundKinds; ++kind) {
      out.emplace_back(name_of(static_cast<MemoryBoundKind>(kind)));
    }
    return out;
  }();
  return names;
}

const std::vector<std::string>& gemm_role_names() {
  static const std::vector<std::string> names = {name_of(GemmRole::kForward),
                                                 name_of(GemmRole::kInputGradient),
                                                 name_of(GemmRole::kWeightGradient)};
  return names;
}

const std::vector<std::string>& provenance_names() {
  static const std::vector<std::string> names = {"measured", "interpolated", "extrapolated",
                                                 "data_sheet"};
  return names;
}

const std::vector<std::string>& curve_names() {
  static const std::vector<std::string> names = {
      "gemm", "attention", "memory_bound", "host", "collective", "point_to_point", "exact"};
  return names;
}

void read_curve(const JsonValue& value, Profile& profile) {
  ObjectReader reader(value);
  const auto operation = reader.choice(
      "operation", {"gemm", "attention", "memory_bound", "exact", "collective", "grouped_gemm"});
  if (!reader.required("operation") || !operation) return;
  if (*operation == 4) {
    read_collective(reader, profile);
  } else if (*operation == 3) {
    if (const auto samples = reader.required("samples")) read_exact_samples(*samples, profile);
  } else {
    const auto form = reader.required("form");
    if (!form) return;
    if (*operation == 0) read_gemm(reader, *form, profile);
    if (*operation == 1) read_attention(reader, *form, profile);
    if (*operation == 5) read_grouped(reader, *form, profile);
    if (*operation == 2) {
      profile.memory = read_form<MemoryFit>(*form);
      profile.memory_provenance = read_provenance(reader, "provenance", profile.provenance);
    }
  }
  for (const char* told : {"held_out_error", "fitted_on", "provenance", "notes"}) {
    reader.ignore(told);  // for people; what counts of them is in the profile's own keys
  }
  reader.finish();
}

}  // namespace stepcast
