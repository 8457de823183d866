// SPDX-License-Identifier: Apache-2.0
#include "predict/pricing.h"

#include <utility>

#include "predict/choose_profile.h"

namespace stepcast {

Result<std::unique_ptr<Pricing>> make_pricing(const Scenario& scenario, const DataFolders& folders,
                                              bool own_kernels) {
  auto profile = choose_profile(scenario, folders);
  if (!profile) return failure(profile.error());
  if (own_kernels) use_own_kernels(*profile);
  auto errors = MeasuredErrors::read(folders.profiles);
  if (!errors) return failure(errors.error());
  std::unique_ptr<Pricing> pricing(
      new Pricing{{scenario.cluster.spec.accelerator, *profile,
                   scenario.training.compile || own_kernels, scenario.training.framework},
                  {scenario.cluster, folders.profiles, profile->mpi, profile->nccl},
                  std::move(*errors)});
  if (!pricing->collectives.errors().empty()) return failure(pricing->collectives.errors());
  return pricing;
}

}  // namespace stepcast
