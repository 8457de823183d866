// SPDX-License-Identifier: Apache-2.0
#include "cost/profile_curves.h"
#include "core/read_rows.h"
#include "core/row_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/enum_names.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/collective_curve.h"
#include "cost/jitter.h"
#include "cost/mpi_curve.h"
#include "cost/profile.h"
#include "cost/profile_forms.h"
#include "cost/provenance.h"
#include "cost/sample_table.h"
#include "layout/choices.h"
#include "layout/framework.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

constexpr double kLargest = 1e6;

void read_number(ObjectReader& reader, const char* key, double& out, double low = 0,
                 double high = kLargest) {
  if (const auto value = reader.number(key, low, high)) out = *value;
}

Provenance read_provenance(ObjectReader& reader, const char* key, Provenance otherwise) {
  const auto index = reader.choice(key, enum_names<Provenance>());
  return index ? static_cast<Provenance>(*index) : otherwise;
}

void read_gemm_samples(const JsonValue& value, GemmCurve& curve) {
  ObjectReader reader(value);
  curve.samples_provenance = read_provenance(reader, "provenance", Provenance::kMeasured);
  read_number(reader, "reach", curve.neighbourhood.reach, kLeastFactor, 100);
  read_number(reader, "shrinkage", curve.neighbourhood.shrinkage, kLeastFactor, 100);
  curve.neighbourhood.all_roles = reader.boolean("all_roles").value_or(false);
  curve.samples = read_samples<GemmSample>(reader);
  reader.finish();
}

void read_attention_samples(const JsonValue& value, AttentionVariant& variant) {
  ObjectReader reader(value);
  variant.samples_provenance = read_provenance(reader, "provenance", Provenance::kMeasured);
  variant.samples = read_samples<AttentionSample>(reader);
  reader.finish();
}

// An operation that was measured as it stands in a program; times in seconds.
struct ExactSample {
  std::string signature;
  double mean, deviation, median, p10, p90;

  static Rows columns() {
    using F = ExactSample;
    constexpr auto time = [](Row one, double least = 0) { return one.within(least, kLargest); };
    static constexpr Row all[] = {row<&F::signature>("signature"),
                                  time(row<&F::mean>("mean"), 1e-12),
                                  time(row<&F::deviation>("deviation")),
                                  time(row<&F::median>("median")),
                                  time(row<&F::p10>("p10")),
                                  time(row<&F::p90>("p90"))};
    return rows_of<F>(all);
  }
};

void read_exact_samples(const JsonValue& value, Profile& profile) {
  ObjectReader reader(value);
  for (const ExactSample& one : read_samples<ExactSample>(reader)) {
    const double body = (one.p90 - one.p10) / kP10ToP90;
    const double variance = body * body;
    profile.exact[one.signature] = {Seconds(one.mean),
                                    {variance, Seconds(std::max(0.0, one.mean - one.median)),
                                     std::max(0.0, one.deviation * one.deviation - variance)}};
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
  const auto precision = reader.choice("precision", {"bf16", "fp8", "fp32", "fp4"}).value_or(0);
  GemmCurve curve;
  curve.fit = read_object<GemmFit>(form);
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
  } else if (precision == 2) {
    profile.gemm_fp32 = std::move(curve);
  } else {
    profile.gemm_fp4 = std::move(curve);
  }
}

void read_grouped(ObjectReader& reader, const JsonValue& form, Profile& profile) {
  profile.grouped = read_object<GroupedFit>(form);
  profile.grouped_provenance = read_provenance(reader, "provenance", profile.provenance);
}

void read_attention(ObjectReader& reader, const JsonValue& form, Profile& profile) {
  AttentionVariant variant;
  variant.name = reader.required_text("kernel");
  variant.fit = read_object<AttentionFit>(form);
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
      profile.memory = read_object<MemoryFit>(*form);
      profile.memory_provenance = read_provenance(reader, "provenance", profile.provenance);
    }
  }
  for (const char* told : {"held_out_error", "fitted_on", "provenance", "notes"}) {
    reader.ignore(told);  // for people; what counts of them is in the profile's own keys
  }
  reader.finish();
}

}  // namespace stepcast
