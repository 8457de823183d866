// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cost/profile_curves.h"
#include "layout/choices.h"

namespace stepcast {
namespace {

using nlohmann::ordered_json;

// Four digits: less than any error of a fit, and the same for every compiler.
double rounded(double value) {
  if (value == 0) return 0;
  const double digits = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * digits) / digits;
}
std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

bool is_flat(const ordered_json& node) {
  if (!node.is_array() && !node.is_object()) return true;
  for (const auto& item : node) {
    if (item.is_structured()) return false;
  }
  return true;
}

// Like dump(2), but a container of scalars that fits a line stays on it.
void print(const ordered_json& node, std::size_t indent, std::string& out) {
  const std::string line = node.dump();
  if (!node.is_structured() || (is_flat(node) && line.size() + indent <= 96)) {
    // nlohmann prints no blanks: one after each separator outside texts.
    bool text = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) text = !text;
      out += line[i];
      if (!text && (line[i] == ',' || line[i] == ':')) out += ' ';
    }
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += node.is_array() ? "[\n" : "{\n";
  std::size_t left = node.size();
  for (const auto& item : node.items()) {
    out += inner;
    if (node.is_object()) out += ordered_json(item.key()).dump() + ": ";
    print(item.value(), indent + 2, out);
    out += --left > 0 ? ",\n" : "\n";
  }
  out += std::string(indent, ' ') + (node.is_array() ? "]" : "}");
}

ordered_json form_of(const GemmFit& fit) {
  return {
      {"efficiency", rounded(fit.efficiency)},
      {"tile_m", fit.tile_m},
      {"tile_n", fit.tile_n},
      {"tile_half", rounded(fit.tile_half)},
      {"k_half", rounded(fit.k_half)},
      {"wave_weight", rounded(fit.wave_weight)},
      {"memory_fraction", rounded(fit.memory_fraction)},
      {"misaligned_factor", rounded(fit.misaligned_factor)},
      {"sustained_factor", rounded(fit.sustained_factor)},
      {"sustained", microseconds(fit.sustained_s)},
      {"accumulate_exposed", rounded(fit.accumulate_exposed)},
      {"overhead", microseconds(fit.overhead_s)},
      {"role_factor",
       {rounded(fit.role_factor[0]), rounded(fit.role_factor[1]), rounded(fit.role_factor[2])}}};
}

ordered_json form_of(const AttentionFit& fit) {
  return {{"forward_efficiency", rounded(fit.forward_efficiency)},
          {"backward_efficiency", rounded(fit.backward_efficiency)},
          {"causal_efficiency", rounded(fit.causal_efficiency)},
          {"causal_half_length", rounded(fit.causal_half_length)},
          {"length_half", rounded(fit.length_half)},
          {"backward_length_half", rounded(fit.backward_length_half)},
          {"blocks_half", rounded(fit.blocks_half)},
          {"backward_blocks_half", rounded(fit.backward_blocks_half)},
          {"head_dim_factor",
           {rounded(fit.head_dim_factor[0]), rounded(fit.head_dim_factor[1]),
            rounded(fit.head_dim_factor[2])}},
          {"overhead", microseconds(fit.overhead_s)}};
}

ordered_json form_of(const MemoryFit& fit) {
  ordered_json kinds = ordered_json::object();
  for (std::size_t kind = 0; kind < fit.kind_factor.size(); ++kind) {
    if (fit.kind_factor[kind] != 1) {
      kinds[elementwise_kind_names()[kind]] = rounded(fit.kind_factor[kind]);
    }
  }
  return {{"fraction", rounded(fit.fraction)},
          {"half", fmt::format("{:.4g} B", fit.half_bytes)},
          {"overhead", microseconds(fit.overhead_s)},
          {"kind_factor", std::move(kinds)}};
}

ordered_json samples_of(const Profile& profile) {
  ordered_json rows = ordered_json::array();
  for (const GemmSample& sample : profile.gemm_samples) {
    rows.push_back({gemm_role_names()[static_cast<std::size_t>(sample.role)], sample.batch,
                    sample.m, sample.n, sample.k, sample.output_bytes, sample.accumulate ? 1 : 0,
                    rounded(sample.efficiency)});
  }
  return {{"provenance", name_of(profile.gemm_samples_provenance)},
          {"reach", profile.neighbourhood.reach},
          {"shrinkage", profile.neighbourhood.shrinkage},
          {"columns", {"role", "batch", "m", "n", "k", "output_bytes", "accumulate", "median"}},
          {"rows", std::move(rows)}};
}

ordered_json samples_of(const AttentionVariant& variant) {
  ordered_json rows = ordered_json::array();
  for (const AttentionSample& sample : variant.samples) {
    rows.push_back({sample.backward ? "backward" : "forward", sample.batch, sample.heads,
                    sample.kv_heads, sample.sequence, sample.head_dim, sample.causal ? 1 : 0,
                    rounded(sample.efficiency)});
  }
  return {{"provenance", name_of(variant.samples_provenance)},
          {"columns",
           {"pass", "batch", "heads", "kv_heads", "sequence", "head_dim", "causal", "median"}},
          {"rows", std::move(rows)}};
}

void add_note(ordered_json& curve, const std::vector<CurveNote>& notes,
              const std::string& operation) {
  for (const CurveNote& note : notes) {
    if (note.operation != operation) continue;
    curve["provenance"] = name_of(note.provenance);
    if (note.held_out.median > 0) {
      curve["held_out_error"] = {{"median", rounded(note.held_out.median)},
                                 {"p90", rounded(note.held_out.p90)}};
    }
    curve["fitted_on"] = note.fitted_on;
  }
}

ordered_json curves_of(const ShippedProfile& shipped) {
  const Profile& profile = shipped.profile;
  ordered_json curves = ordered_json::array();
  ordered_json gemm = {{"operation", "gemm"}, {"precision", "bf16"}};
  add_note(gemm, shipped.notes, "gemm bf16");
  gemm["form"] = form_of(profile.gemm);
  if (!profile.gemm_samples.empty()) gemm["samples"] = samples_of(profile);
  curves.push_back(std::move(gemm));

  ordered_json fp8 = {{"operation", "gemm"}, {"precision", "fp8"}};
  add_note(fp8, shipped.notes, "gemm fp8");
  fp8["form"] = form_of(profile.gemm_fp8);
  curves.push_back(std::move(fp8));

  for (const AttentionVariant& variant : profile.attention_variants) {
    ordered_json attention = {{"operation", "attention"}, {"kernel", variant.name}};
    ordered_json frameworks = ordered_json::array();
    for (std::size_t i = 0; i < profile.attention_kernel.size(); ++i) {
      if (profile.attention_kernel[i] == variant.name) frameworks.push_back(framework_names()[i]);
    }
    attention["frameworks"] = std::move(frameworks);
    add_note(attention, shipped.notes, "attention " + variant.name);
    attention["form"] = form_of(variant.fit);
    if (!variant.samples.empty()) attention["samples"] = samples_of(variant);
    curves.push_back(std::move(attention));
  }
  if (profile.attention_variants.empty()) {
    curves.push_back({{"operation", "attention"},
                      {"kernel", "data-sheet"},
                      {"provenance", name_of(Provenance::kDataSheet)},
                      {"form", form_of(profile.attention)}});
  }

  ordered_json memory = {{"operation", "memory_bound"}};
  add_note(memory, shipped.notes, "memory_bound");
  memory["form"] = form_of(profile.memory);
  curves.push_back(std::move(memory));
  return curves;
}

}  // namespace

std::string profile_text(const ShippedProfile& shipped) {
  const Profile& profile = shipped.profile;
  ordered_json root = {{"stepcast_profile", 1},
                       {"name", profile.name},
                       {"device", profile.device},
                       {"machine", {{"device", shipped.title}}},
                       {"provenance", name_of(profile.provenance)}};
  if (!shipped.remark.empty()) root["notes"] = shipped.remark;
  ordered_json errors = ordered_json::object();
  for (std::size_t curve = 0; curve < profile.sigma.size(); ++curve) {
    errors[curve_names()[curve]] = rounded(profile.sigma[curve]);
  }
  root["log_error"] = std::move(errors);
  root["fitted_on"] = profile.fitted_on;
  root["curves"] = curves_of(shipped);
  std::string out;
  print(root, 0, out);
  return out + "\n";
}

}  // namespace stepcast
