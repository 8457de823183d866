// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/escape.h"
#include "cost/profile_curves.h"

namespace stepcast {

using nlohmann::ordered_json;

namespace {

bool is_flat(const ordered_json& node) {
  if (!node.is_array() && !node.is_object()) return true;
  for (const auto& item : node) {
    if (item.is_structured()) return false;
  }
  return true;
}

// Like dump(2), but a container of scalars that fits a line stays on it.
void print(const ordered_json& node, std::size_t indent, std::string& out) {
  const std::string line = json_text(node);
  if (!node.is_structured() || (is_flat(node) && line.size() + indent <= 96)) {
    // nlohmann prints no blanks: one after each separator outside texts.
    bool text = false, escape = false;
    for (const char c : line) {
      if (c == '"' && !escape) text = !text;
      escape = text && c == '\\' && !escape;
      out += c;
      if (!text && (c == ',' || c == ':')) out += ' ';
    }
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += node.is_array() ? "[\n" : "{\n";
  std::size_t left = node.size();
  for (const auto& item : node.items()) {
    out += inner;
    if (node.is_object()) out += json_literal(item.key()) + ": ";
    print(item.value(), indent + 2, out);
    out += --left > 0 ? ",\n" : "\n";
  }
  out += std::string(indent, ' ') + (node.is_array() ? "]" : "}");
}

// Factors of 1 are left out.
ordered_json factors_json(const KindFactors& factors) {
  ordered_json out = ordered_json::object();
  for (std::size_t kind = 0; kind < factors.size(); ++kind) {
    if (factors[kind] != 1) out[elementwise_kind_names()[kind]] = rounded(factors[kind]);
  }
  return out;
}

}  // namespace

double rounded(double value) {
  if (value == 0) return 0;
  const double digits = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * digits) / digits;
}
std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }
double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

ordered_json error_json(const FitError& error) {
  return {{"median", rounded(error.median)}, {"p90", rounded(error.p90)}};
}

ordered_json form_json(const GemmFit& fit) {
  ordered_json out = {
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
  if (fit.back_to_back > 0) out["back_to_back"] = rounded(fit.back_to_back);
  return out;
}

ordered_json form_json(const AttentionFit& fit) {
  ordered_json out = {{"forward_efficiency", rounded(fit.forward_efficiency)},
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
  if (fit.back_to_back > 0) out["back_to_back"] = rounded(fit.back_to_back);
  return out;
}

ordered_json form_json(const MemoryFit& fit) {
  ordered_json out = {{"fraction", rounded(fit.fraction)},
                      {"half", fmt::format("{:.4g} B", fit.half_bytes)},
                      {"overhead", microseconds(fit.overhead_s)},
                      {"kind_factor", factors_json(fit.kind_factor)}};
  if (fit.backward_factor != kEqualKinds) {
    out["backward_factor"] = factors_json(fit.backward_factor);
  }
  if (fit.step_factor != kEqualKinds) out["step_factor"] = factors_json(fit.step_factor);
  return out;
}

ordered_json host_json(const HostFit& host) {
  return {{"launch", microseconds(host.launch_s)},
          {"collective", microseconds(host.collective_s)},
          {"graph_launch", microseconds(host.graph_launch_s)},
          {"backward_factor", rounded(host.backward_factor)},
          {"step", microseconds(host.step_s)}};
}

std::string profile_layout(const ordered_json& root) {
  std::string out;
  print(root, 0, out);
  return out + "\n";
}

}  // namespace stepcast
