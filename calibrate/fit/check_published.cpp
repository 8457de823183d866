// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/check_published.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace stepcast {

Errors check_published(const Published& published,
                       const std::map<std::string, Accelerator>& accelerators) {
  Errors errors;
  const auto need = [&](const std::string& device) {
    if (accelerators.count(device) != 0) return;
    errors.push_back({ErrorCode::kNotFound, fmt::format("no device '{}'", device), "", "", ""});
  };
  for (const GemmTable& table : published.gemm) need(table.device);
  for (const AttentionTable& table : published.attention) need(table.device);
  for (const GroupedTable& table : published.grouped) need(table.device);
  for (const ExpertProductTable& table : published.expert_products) need(table.device);
  for (const MemoryTable& table : published.memory) need(table.device);
  for (const DeviceRules& rules : published.devices) {
    need(rules.device);
    const auto serves = [&](const GemmTable& table) {
      return table.device == rules.gemm_from && table.precision == DataType::kBf16;
    };
    if (!rules.gemm_from.empty() && std::ranges::none_of(published.gemm, serves)) {
      errors.push_back({ErrorCode::kNotFound,
                        fmt::format("there is no GEMM table of '{}'", rules.gemm_from), "", "",
                        ""});
    }
  }
  need(published.power_law.slow_device);
  need(published.power_law.fast_device);
  std::set<AttentionKey> fitted;
  for (const AttentionFitRule& rule : published.attention_fits) {
    need(rule.fits.device);
    if (rule.begins_with && fitted.count(*rule.begins_with) == 0) {
      errors.push_back({ErrorCode::kNotFound,
                        fmt::format("no earlier fit of attention is '{}' of '{}'",
                                    rule.begins_with->kernel, rule.begins_with->device),
                        "", "attention_fits", "put it before the one that begins with it"});
    }
    fitted.insert(rule.fits);
  }
  return errors;
}

}  // namespace stepcast
