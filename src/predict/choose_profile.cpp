// SPDX-License-Identifier: Apache-2.0
#include "predict/choose_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/profile.h"
#include "cost/provenance.h"
#include "layout/data_folders.h"
#include "layout/framework.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr const char* kProcessor = "cpu";  // the device of profiles of processors

constexpr const char* kFix =
    "calibrate on this machine, or give the cluster an accelerator object with the profile's "
    "processor as title and its cores";

// GPUs of one model are alike everywhere. Processors are told apart by their own names.
Errors foreign_machine(const Accelerator& device, const Profile& profile) {
  Errors errors;
  const MeasuredMachine& machine = profile.machine;
  if (!machine.processor.empty() && machine.processor != device.title) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("measured on '{}', and the cluster's processor is '{}'",
                                  machine.processor, device.title),
                      profile.file, "machine.processor", kFix});
  }
  if (machine.cores > 0 && device.cores > 0 && machine.cores != device.cores) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("measured with {} cores, and the cluster's machine has {}",
                                  machine.cores, device.cores),
                      profile.file, "machine.cores", kFix});
  }
  return errors;
}

// The profile is of another device of the same kind: it gives fractions of peaks, not times.
void extrapolate(Profile& profile) {
  const auto demote = [](Provenance& provenance) {
    provenance = std::max(provenance, Provenance::kExtrapolated);
  };
  demote(profile.provenance);
  demote(profile.gemm_samples_provenance);
  demote(profile.gemm_fp8.provenance);
  demote(profile.gemm_fp8.samples_provenance);
  if (profile.gemm_fp4) {
    demote(profile.gemm_fp4->provenance);
    demote(profile.gemm_fp4->samples_provenance);
  }
  demote(profile.memory_provenance);
  demote(profile.grouped_provenance);
  for (AttentionVariant& variant : profile.attention_variants) {
    demote(variant.provenance);
    demote(variant.samples_provenance);
  }
}

Result<Profile> load(const std::string& name, const Accelerator& device,
                     const DataFolders& folders) {
  auto profile = load_profile(name, folders.profiles);
  if (!profile) return profile;
  if (device.is_cpu() != (profile->device == kProcessor)) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("'{}' is of {}, and the cluster has {}", name, profile->device,
                                device.is_cpu() ? "processors" : "GPUs"),
                    "", "profile", "name a profile of the cluster's device"});
  }
  if (!device.is_cpu()) {
    const bool own = profile->device == device.name || name == device.profile;
    if (!own) extrapolate(*profile);
    return profile;
  }
  if (Errors errors = foreign_machine(device, *profile); !errors.empty()) {
    return failure(std::move(errors));
  }
  // hosts.json is about frameworks that drive a GPU.
  for (const Framework framework : all_frameworks()) {
    if (!profile->own_host[framework]) profile->host[framework] = kNoHost;
  }
  return profile;
}

}  // namespace

Result<Profile> device_profile(const Accelerator& device, const DataFolders& folders) {
  if (device.profile.empty()) return data_sheet_profile(device);
  auto profile = load(device.profile, device, folders);
  if (profile) return profile;
  Errors errors = profile.error();
  for (Error& error : errors) {
    if (error.file.empty()) error.path = "cluster.accelerator.profile";  // and not what is in it
  }
  return failure(std::move(errors));
}

Result<Profile> choose_profile(const Scenario& scenario, const DataFolders& folders) {
  return named_profile(scenario.profile, scenario.cluster.spec.accelerator, folders);
}

Result<Profile> named_profile(const std::string& profile, const Accelerator& device,
                              const DataFolders& folders) {
  if (profile == "none") return data_sheet_profile(device);
  return profile.empty() ? device_profile(device, folders) : load(profile, device, folders);
}

void use_own_kernels(Profile& profile) {
  const Framework own = own_executor();
  profile.host.fill(HostFit(profile.host[own]));
  std::string kernel = profile.attention_kernel[own];
  if (kernel.empty() && !profile.attention_variants.empty()) {
    kernel = profile.attention_variants.front().name;  // whose form is the plain one
  }
  profile.attention_kernel.fill(kernel);
}

}  // namespace stepcast
