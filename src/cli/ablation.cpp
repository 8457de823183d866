// SPDX-License-Identifier: Apache-2.0
#include "cli/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"

namespace stepcast::cli {
namespace {

// A key that makes a step faster or smaller, and its value where it does not.
struct Switch {
  std::string_view path, off;
  bool alone = true;  // it is off for its own sake, and not with another one alone
};
constexpr Switch kSwitches[] = {{"layout.schedule", "1f1b"},
                                {"layout.virtual_stages", "1", false},
                                {"layout.sequence_parallel", "false"},
                                {"layout.overlap.grad_reduce", "false"},
                                {"layout.overlap.param_gather", "false"},
                                {"layout.overlap.tp", "false"},
                                {"layout.overlap.pp", "false"},
                                {"layout.overlap.ep", "false"},
                                {"layout.overlap.expert_wgrad", "false"},
                                {"layout.overlap.shared_experts", "false"},
                                {"layout.overlap.offload", "false"},
                                {"layout.defer_head_wgrad", "0"},
                                {"layout.recompute", "none"},
                                {"training.precision", "bf16"},
                                {"training.attention", "unfused"},
                                {"training.compile", "false"},
                                {"training.no_sync", "false"},
                                {"training.fp8_params", "false"},
                                {"training.fp8_attention", "false"},
                                {"training.fused_gradient_accumulation", "false"},
                                {"training.fused_cross_entropy", "false"},
                                {"training.async_tensor_backward", "false"},
                                {"training.scatter_gather_p2p", "false"}};

// The value at "layout.overlap.tp" as --set takes it; empty where there is none.
std::string value_at(const SortedJson& scenario, std::string_view path) {
  const SortedJson* at = scenario.find_path(path);
  if (at == nullptr) return "";
  return at->is_string() ? at->get_text() : json_text(*at);
}

bool is_on(const SortedJson& scenario, const Switch& one) {
  const std::string value = value_at(scenario, one.path);
  // Types without a letter less than 16 bits are no optimisation of 16-bit training.
  if (one.path == "training.precision") return value == "fp8" || value == "fp4";
  return !value.empty() && value != one.off;
}

std::string_view last_part(std::string_view path) { return path.substr(path.find('.') + 1); }

// Turns off what a rule names, until the scenario is legal or no rule names more.
Ablation turned_off(const SortedJson& base, const Switch& first,
                    const std::function<Result<Scenario>(const std::vector<std::string>&)>& read) {
  Ablation out;
  std::set<std::string_view> off;
  const auto turn_off = [&](const Switch& one) {
    if (off.insert(one.path).second) out.sets.push_back(fmt::format("{}={}", one.path, one.off));
  };
  turn_off(first);
  // An order of passes has as many chunks as it needs.
  if (first.path == "layout.schedule") turn_off(kSwitches[1]);
  auto scenario = read(out.sets);
  for (std::size_t before = 0; !scenario && before != off.size();) {
    before = off.size();
    for (const Error& error : scenario.error()) {
      // A flag may stand before the key: "--set layout.overlap.tp".
      const auto named = std::ranges::find_if(kSwitches, [&](const Switch& other) {
        return error.path.find(other.path) != error.path.npos;
      });
      if (named != std::end(kSwitches) && is_on(base, *named)) turn_off(*named);
    }
    if (before != off.size()) scenario = read(out.sets);
  }
  const SortedJson now = scenario ? to_json(*scenario) : SortedJson();
  for (const Switch& one : kSwitches) {
    const bool is_off = off.contains(one.path) || (scenario && !is_on(now, one));
    if (!is_on(base, one) || !is_off) continue;
    out.name += fmt::format("{}{}", out.name.empty() ? "" : ", ", last_part(one.path));
  }
  return out;
}

}  // namespace

std::vector<Ablation> ablations_of(
    const Scenario& base,
    const std::function<Result<Scenario>(const std::vector<std::string>& sets)>& read) {
  const SortedJson resolved = to_json(base);
  std::vector<Ablation> out;
  for (const Switch& one : kSwitches) {
    if (!one.alone || !is_on(resolved, one)) continue;
    Ablation ablation = turned_off(resolved, one, read);
    const bool is_known = std::ranges::any_of(
        out, [&](const Ablation& other) { return other.name == ablation.name; });
    if (!is_known) out.push_back(std::move(ablation));
  }
  return out;
}

}  // namespace stepcast::cli
