// SPDX-License-Identifier: Apache-2.0
// The profile that prices a scenario: the one it names, else the one that its device names, else
// the device's data sheet.
#pragma once

#include <string>

#include "core/result.h"

namespace stepcast {

struct Accelerator;
struct DataFolders;
struct Profile;
struct Scenario;

// The profile that the device names; its data sheet where it names none.
Result<Profile> device_profile(const Accelerator& device, const DataFolders& folders);

// The one of this name or path, "none" for the data sheet, "" for the one that the device names.
Result<Profile> named_profile(const std::string& profile, const Accelerator& device,
                              const DataFolders& folders);

// A profile of another processor than the cluster's is refused: its times say nothing about it.
Result<Profile> choose_profile(const Scenario& scenario, const DataFolders& folders);

// Gives every framework the attention and the host costs of `native`, which are those of this
// project's executor: it runs the program of any framework with kernels of its own, and chains of
// elementwise ones fused.
void use_own_kernels(Profile& profile);

}  // namespace stepcast
