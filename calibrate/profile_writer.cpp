// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile_writer.h"

#include <algorithm>

#include "calibrate/profile_json.h"
#include "core/json_tree.h"
#include "core/write_rows.h"
#include "cost/profile_curves.h"
#include "cost/sample_table.h"
#include "layout/choices.h"

namespace stepcast {
namespace {

// Rows under their columns, and the clock of each sample where any was told.
template <typename Sample>
void add_samples(const std::vector<Sample>& samples, Json& out) {
  const bool tells =
      std::ranges::any_of(samples, [](const Sample& sample) { return sample.sm_clock_mhz > 0; });
  out["columns"] = sample_columns(Sample::columns());
  if (tells) out["columns"].push_back("sm_clock_mhz");
  out["rows"] = Json::array();
  for (const Sample& sample : samples) {
    Json row = sample_row(Sample::columns(), &sample, rounded);
    if (tells) row.push_back(sample.sm_clock_mhz);
    out["rows"].push_back(std::move(row));
  }
}

Json samples_of(const std::vector<GemmSample>& samples, Provenance provenance,
                const Neighbourhood& neighbourhood) {
  Json out = {{"provenance", name_of(provenance)},
              {"reach", neighbourhood.reach},
              {"shrinkage", neighbourhood.shrinkage}};
  if (neighbourhood.all_roles) out["all_roles"] = true;
  add_samples(samples, out);
  return out;
}

Json samples_of(const AttentionVariant& variant) {
  Json out = {{"provenance", name_of(variant.samples_provenance)}};
  add_samples(variant.samples, out);
  return out;
}

void add_note(Json& curve, const std::vector<CurveNote>& notes, const std::string& operation) {
  for (const CurveNote& note : notes) {
    if (note.operation != operation) continue;
    curve["provenance"] = name_of(note.provenance);
    if (note.held_out.median > 0) {
      curve["held_out_error"] = error_json(note.held_out);
    }
    curve["fitted_on"] = note.fitted_on;
  }
}

Json curve_of(const CollectiveTable& table) {
  Json curve = {{"operation", "collective"}, {"transport", "nccl"}};
  curve.update(to_json(table.group));
  if (table.held_out.median > 0) curve["held_out_error"] = error_json(table.held_out);
  Json samples = Json::array();
  for (const CollectiveSample& sample : table.samples) {
    samples.push_back(
        {static_cast<std::int64_t>(sample.size.value()), six_digits(sample.time.value())});
  }
  curve["samples"] = std::move(samples);
  return curve;
}

Json grouped_curve(const ShippedProfile& shipped) {
  Json grouped = {{"operation", "grouped_gemm"}};
  add_note(grouped, shipped.notes, "grouped gemm");
  grouped["form"] = write_form(shipped.profile.grouped);
  return grouped;
}

Json fp4_curve(const ShippedProfile& shipped) {
  const GemmCurve& in_fp4 = *shipped.profile.gemm_fp4;
  Json out = {{"operation", "gemm"}, {"precision", "fp4"}};
  add_note(out, shipped.notes, "gemm fp4");
  out["form"] = write_form(in_fp4.fit);
  out["samples"] = samples_of(in_fp4.samples, in_fp4.samples_provenance, in_fp4.neighbourhood);
  return out;
}

Json curves_of(const ShippedProfile& shipped) {
  const Profile& profile = shipped.profile;
  Json curves = Json::array();
  Json gemm = {{"operation", "gemm"}, {"precision", "bf16"}};
  add_note(gemm, shipped.notes, "gemm bf16");
  gemm["form"] = write_form(profile.gemm);
  if (!profile.gemm_samples.empty()) {
    gemm["samples"] =
        samples_of(profile.gemm_samples, profile.gemm_samples_provenance, profile.neighbourhood);
  }
  curves.push_back(std::move(gemm));

  Json fp8 = {{"operation", "gemm"}, {"precision", "fp8"}};
  add_note(fp8, shipped.notes, "gemm fp8");
  const GemmCurve& in_fp8 = profile.gemm_fp8;
  fp8["form"] = write_form(in_fp8.fit);
  if (!in_fp8.samples.empty()) {
    fp8["samples"] = samples_of(in_fp8.samples, in_fp8.samples_provenance, in_fp8.neighbourhood);
  }
  curves.push_back(std::move(fp8));

  if (profile.gemm_fp4) curves.push_back(fp4_curve(shipped));

  if (profile.grouped_provenance != Provenance::kDataSheet) {
    curves.push_back(grouped_curve(shipped));
  }

  for (const AttentionVariant& variant : profile.attention_variants) {
    Json attention = {{"operation", "attention"}, {"kernel", variant.name}};
    Json frameworks = Json::array();
    for (const Framework framework : all_frameworks()) {
      if (profile.attention_kernel[framework] == variant.name) {
        frameworks.push_back(name_of(framework));
      }
    }
    if (!frameworks.empty()) attention["frameworks"] = std::move(frameworks);
    add_note(attention, shipped.notes, "attention " + variant.name);
    attention["form"] = write_form(variant.fit);
    if (!variant.samples.empty()) attention["samples"] = samples_of(variant);
    curves.push_back(std::move(attention));
  }
  if (profile.attention_variants.empty()) {
    curves.push_back({{"operation", "attention"},
                      {"kernel", "data-sheet"},
                      {"provenance", name_of(Provenance::kDataSheet)},
                      {"form", write_form(profile.attention)}});
  }

  Json memory = {{"operation", "memory_bound"}};
  add_note(memory, shipped.notes, "memory_bound");
  memory["form"] = write_form(profile.memory);
  curves.push_back(std::move(memory));
  for (const CollectiveTable& table : shipped.collectives) curves.push_back(curve_of(table));
  return curves;
}

// Writes the host that was measured with the rest: it is one for all frameworks that have it.
void add_host(Json& root, const Profile& profile) {
  Json frameworks = Json::array();
  for (const Framework framework : all_frameworks()) {
    if (!profile.own_host[framework]) continue;
    if (frameworks.empty()) root["host"] = write_form(profile.host[framework]);
    frameworks.push_back(name_of(framework));
  }
  if (frameworks.empty()) return;
  if (frameworks.size() < all_frameworks().size()) root["host"]["frameworks"] = frameworks;
}

}  // namespace

std::string profile_text(const ShippedProfile& shipped) {
  const Profile& profile = shipped.profile;
  Json root = {{"stepcast_profile", 1},
               {"name", profile.name},
               {"device", profile.device},
               {"machine", {{"device", shipped.title}}}};
  for (const auto& [key, fact] : shipped.machine) root["machine"][key] = fact;
  add_host(root, profile);
  if (profile.sms_per_channel != 1) {
    root["overlap"] = {{"sms_per_channel", rounded(profile.sms_per_channel)}};
  }
  if (profile.host_memory) root["host_memory"] = json_of(*profile.host_memory);
  root["provenance"] = name_of(profile.provenance);
  if (!shipped.remark.empty()) root["notes"] = shipped.remark;
  Json errors = Json::object();
  for (std::size_t curve = 0; curve < profile.sigma.size(); ++curve) {
    if (static_cast<Curve>(curve) == Curve::kExact) continue;  // none was measured as it stands
    errors[curve_names()[curve]] = rounded(profile.sigma[curve]);
  }
  root["log_error"] = std::move(errors);
  root["fitted_on"] = profile.fitted_on;
  root["curves"] = curves_of(shipped);
  return profile_layout(root);
}

}  // namespace stepcast
