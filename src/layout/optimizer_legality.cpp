// SPDX-License-Identifier: Apache-2.0
// Checks which optimizers a framework has, and where.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/keys.h"
#include "layout/legality.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr const char* kOptimizerKey = "training.optimizer";
constexpr const char* kMuonModeKey = "training.muon_mode";

std::string modes_of(const FrameworkTraits& framework) {
  std::vector<std::string> names;
  for (const MuonMode mode : framework.muon_modes) names.emplace_back(name_of(mode));
  return one_of(names);
}

void check_muon_framework(const Scenario& s, Findings& findings) {
  const Training& t = s.training;
  const FrameworkTraits& framework = traits_of(t.framework);
  if (!framework.has_muon) {
    findings.illegal(
        kOptimizerKey, fmt::format("muon with framework {}", framework.name),
        fmt::format("adamw, or framework {}", frameworks_with(&FrameworkTraits::has_muon)));
    return;
  }
  const bool has_mode =
      std::ranges::find(framework.muon_modes, t.muon_mode) != framework.muon_modes.end();
  if (!has_mode && findings.trusts({kMuonModeKey})) {
    findings.illegal(kMuonModeKey,
                     fmt::format("{} with framework {}", name_of(t.muon_mode), framework.name),
                     modes_of(framework));
  }
  if (findings.trusts({"layout.zero"}) && s.layout.zero > framework.most_zero_of_muon) {
    findings.illegal("layout.zero",
                     fmt::format("{} with muon in framework {}", s.layout.zero, framework.name),
                     fmt::format("zero {} or less", framework.most_zero_of_muon));
  }
  const bool owners = s.rules.muon_deal == MuonDeal::kOwners;
  if (owners && findings.trusts({"layout.tp"}) && s.layout.tp > 1) {
    // torchtitan's DistMuon takes matrices that one axis of its mesh shards.
    findings.illegal("layout.tp",
                     fmt::format("{} with muon, whose matrices {} shards over data ranks alone",
                                 s.layout.tp, framework.name),
                     "tp 1, or optimizer adamw");
  }
  if (owners && findings.trusts({"layout.etp"}) && s.layout.etp > 1) {
    findings.illegal("layout.etp",
                     fmt::format("{} with muon, whose matrices {} shards over data ranks alone",
                                 s.layout.etp, framework.name),
                     "etp 1, or optimizer adamw");
  }
  if (!owners && s.layout.shard_group > 0 && findings.trusts({"layout.shard_group"})) {
    findings.illegal("layout.shard_group", "muon deals its work to all data ranks",
                     "all, or optimizer adamw");
  }
}

void check_muon(const Scenario& s, const Stated& stated, Findings& findings) {
  const Training& t = s.training;
  if (t.optimizer != Optimizer::kMuon) {
    if (stated.has(kMuonModeKey)) {
      findings.illegal(kMuonModeKey, fmt::format("with optimizer {}", name_of(t.optimizer)),
                       "optimizer muon");
    }
    return;
  }
  if (t.trains_adapters()) {
    findings.illegal(kOptimizerKey, "muon of adapters", "adamw, or mode pretrain");
  }
  if (t.moments_precision != t.master_precision) {
    findings.illegal("training.moments_precision",
                     fmt::format("{} with muon and {} weights", name_of(t.moments_precision),
                                 name_of(t.master_precision)),
                     name_of(t.master_precision));
  }
  check_muon_framework(s, findings);
}

// Flat shards have no rows and columns, and Megatron and DeepSpeed know few optimizers.
void check_small_optimizer(const Scenario& scenario, Findings& findings) {
  const Training& t = scenario.training;
  const FrameworkTraits& framework = traits_of(t.framework);
  const bool small = t.optimizer == Optimizer::kAdamW8bit || t.optimizer == Optimizer::kAdafactor;
  if (small && !framework.has_small_optimizers) {
    findings.illegal(kOptimizerKey,
                     fmt::format("{} with framework {}", name_of(t.optimizer), framework.name),
                     fmt::format("adamw, or framework {}",
                                 frameworks_with(&FrameworkTraits::has_small_optimizers)));
  }
  const bool has_moments = t.optimizer == Optimizer::kAdamW || t.optimizer == Optimizer::kMuon;
  if (!has_moments && t.moments_precision != DataType::kFp32) {
    findings.illegal("training.moments_precision",
                     fmt::format("{} with optimizer {}, whose states have a form of their own",
                                 name_of(t.moments_precision), name_of(t.optimizer)),
                     "leave it out");
  }
}

}  // namespace

void check_optimizer(const Scenario& scenario, const Stated& stated, Findings& findings) {
  if (!findings.trusts({"training.optimizer", "training.framework"})) return;
  check_muon(scenario, stated, findings);
  check_small_optimizer(scenario, findings);
}

}  // namespace stepcast
