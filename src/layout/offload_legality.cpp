// SPDX-License-Identifier: Apache-2.0
// Checks which states may lie in host memory and on disks.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/legality.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// The frameworks that have it, as "this or that".
std::string offloading(bool FrameworkTraits::OffloadTraits::*what) {
  std::vector<std::string> names;
  for (const FrameworkTraits* framework : frameworks()) {
    if (framework->offload.*what) names.emplace_back(framework->name);
  }
  return one_of(names);
}

constexpr const char* kOptimizer = "layout.offload.optimizer";
constexpr const char* kParameters = "layout.offload.parameters";

// stage3.py: "parameter offload is only available with optimizer state offload".
void check_parameters(const Scenario& s, Findings& findings) {
  const Offload& offload = s.layout.offload;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (offload.parameters == 0) {
    if (framework.offload.together && offload.optimizer > 0) {
      findings.illegal(
          kOptimizer,
          fmt::format("{} leaves parameters, gradients and states to the host together",
                      framework.name),
          "offload.parameters 1 as well");
    }
    return;
  }
  if (!framework.offload.parameters) {
    findings.illegal(kParameters, fmt::format("{} keeps parameters on the device", framework.name),
                     "0, or framework " + offloading(&FrameworkTraits::OffloadTraits::parameters));
  } else if (offload.parameters < 1) {
    findings.illegal(kParameters, fmt::format("{} offloads all or none", framework.name), "0 or 1");
  } else if (s.layout.zero != 3 && !s.rules.shards_parameters_with_gradients) {
    findings.illegal(kParameters,
                     fmt::format("with zero {} parameters are not sharded", s.layout.zero),
                     "zero 3");
  } else if (offload.optimizer < 1) {
    findings.illegal(kParameters, "the states of these parameters stay on the device",
                     "offload.optimizer 1 as well");
  }
}

void check_optimizer(const Scenario& s, Findings& findings) {
  const double part = s.layout.offload.optimizer;
  if (part == 0) return;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  const bool parts =
      framework.offload.parts || (framework.offload.sharded_parts && s.layout.zero == 3);
  if (s.training.optimizer == Optimizer::kMuon) {
    // ZeRO-Offload's Muon (its pull request 8464) and Megatron's (4475) are open proposals, and
    // torchtitan's DistMuon wants its states on the device.
    findings.illegal(kOptimizer, "muon's states stay on the device in every framework",
                     "0, or optimizer adamw");
  } else if (s.layout.zero == 0) {
    findings.illegal(kOptimizer, "with zero 0 each rank updates all parameters", "zero 1 or more");
  } else if (part < 1 && !parts) {
    findings.illegal(
        kOptimizer,
        fmt::format("{} offloads all or none with zero {}", framework.name, s.layout.zero),
        framework.offload.sharded_parts ? "0 or 1, or zero 3" : "0 or 1");
  }
}

void check_disks(const Scenario& s, Findings& findings) {
  const Offload& offload = s.layout.offload;
  for (const auto& [key, device, part] :
       {std::tuple("layout.offload.optimizer_device", offload.optimizer_device, offload.optimizer),
        std::tuple("layout.offload.parameter_device", offload.parameter_device,
                   offload.parameters)}) {
    if (device == OffloadDevice::kCpu) continue;
    const FrameworkTraits& framework = traits_of(s.training.framework);
    const ClusterSpec& spec = s.cluster.spec;
    if (part == 0) {
      findings.illegal(key, "nvme, and nothing is offloaded", "leave it out");
    } else if (!framework.offload.disks) {
      findings.illegal(key, fmt::format("{} does not offload to disks", framework.name),
                       "cpu, or framework " + offloading(&FrameworkTraits::OffloadTraits::disks));
    } else if (spec.disk_read.value() <= 0 || spec.disk_write.value() <= 0) {
      findings.illegal(key, fmt::format("{} states no disks", spec.name),
                       "cpu, or the cluster's disk_read and disk_write, as \"25 GB/s\"");
    }
  }
}

void check_overlap(const Scenario& s, Findings& findings) {
  if (s.layout.overlap.offload && s.layout.offload.optimizer == 0) {
    findings.illegal("layout.overlap.offload", "nothing is offloaded", "false");
  }
}

}  // namespace

void check_offload(const Scenario& scenario, Findings& findings) {
  if (!findings.trusts({"training.framework", "layout.zero", "layout.offload", "cluster"})) return;
  check_optimizer(scenario, findings);
  check_parameters(scenario, findings);
  check_disks(scenario, findings);
  check_overlap(scenario, findings);
}

}  // namespace stepcast
