// SPDX-License-Identifier: Apache-2.0
#include "predict/pricing.h"

#include <utility>

#include "cost/gemm_pace.h"
#include "layout/data_folders.h"
#include "layout/framework.h"
#include "layout/scenario.h"
#include "predict/choose_profile.h"

namespace stepcast {
namespace {

// On processors there is no other executor.
KernelStyle style_of(const Scenario& scenario, bool own) {
  if (own || scenario.cluster.spec.accelerator.is_cpu()) return KernelStyle::kOwn;
  if (!scenario.training.compile) return KernelStyle::kInSteps;
  const bool executor = traits_of(scenario.training.framework).is_own_executor;
  return executor ? KernelStyle::kOwn : KernelStyle::kFused;
}

// A profile of its own prices each other model of GPU: the one that the model names.
Errors add_models(const Scenario& scenario, const DataFolders& folders, bool own_kernels,
                  KernelCosts& kernels) {
  const ClusterSpec& spec = scenario.cluster.spec;
  for (const Accelerator& accelerator : spec.other_accelerators) {
    auto profile = device_profile(accelerator, folders);
    if (!profile) return profile.error();
    if (own_kernels) use_own_kernels(*profile);
    profile->gemm = among(profile->gemm, spec.gpus, scenario.training.vboost);
    profile->gemm_fp8.fit = among(profile->gemm_fp8.fit, spec.gpus, scenario.training.vboost);
    kernels.add_model(std::make_shared<const KernelCosts>(
        accelerator, std::move(*profile), style_of(scenario, own_kernels),
        scenario.training.framework, scenario.training.attention_kernel));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Pricing>> make_pricing(const Scenario& scenario, const DataFolders& folders,
                                              bool own_kernels, const ClusterSpec* tuned_for) {
  auto profile = choose_profile(scenario, folders);
  if (!profile) return failure(profile.error());
  if (own_kernels) use_own_kernels(*profile);
  const std::int64_t gpus = scenario.cluster.spec.gpus;
  const bool boost = scenario.training.vboost;
  profile->gemm = among(profile->gemm, gpus, boost);
  profile->gemm_fp8.fit = among(profile->gemm_fp8.fit, gpus, boost);
  auto errors = MeasuredErrors::read(folders.profiles);
  if (!errors) return failure(errors.error());
  std::unique_ptr<Pricing> pricing(
      new Pricing{{scenario.cluster.spec.accelerator, *profile, style_of(scenario, own_kernels),
                   scenario.training.framework, scenario.training.attention_kernel},
                  {scenario.cluster, folders.profiles, profile->mpi, profile->nccl, tuned_for},
                  std::move(*errors),
                  find_units(scenario.cluster.topology, scenario.cluster.spec.gpus_per_domain()),
                  {},
                  nullptr});
  // Jobs that share a fabric fold together, link by link (predict/placed_job.h).
  if (scenario.cluster.spec.of_nodes > 0) pricing->units = {};
  for (const OtherJob& other : scenario.other_jobs) {
    auto priced = make_pricing(*other.scenario, folders, own_kernels);
    if (!priced) return failure(priced.error());
    pricing->other_jobs.push_back(std::move(*priced));
  }
  if (scenario.all_islands) {
    pricing->between = std::make_unique<CollectiveCosts>(*scenario.all_islands, folders.profiles,
                                                         profile->mpi, profile->nccl, tuned_for);
  }
  if (!pricing->collectives.errors().empty()) return failure(pricing->collectives.errors());
  if (Errors wrong = add_models(scenario, folders, own_kernels, pricing->kernels); !wrong.empty()) {
    return failure(std::move(wrong));
  }
  return pricing;
}

}  // namespace stepcast
