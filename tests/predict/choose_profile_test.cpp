// SPDX-License-Identifier: Apache-2.0
#include "cluster/accelerator.h"
#include "cost/profile.h"
#include "cost/provenance.h"
#include "predict/choose_profile.h"

#include <gtest/gtest.h>

#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::source_folders;

Accelerator h100() { return *find_accelerator("h100-sxm5-80g", source_folders().topologies); }

// Its data sheet would be taken for measured costs: a forecast four times as fast.
TEST(DeviceProfile, ThatNamesNothingIsRefused) {
  Accelerator device = h100();
  for (const char* name : {"h100-sxm5-80gb", "none", "/nowhere/h100.json"}) {
    device.profile = name;
    const auto profile = device_profile(device, source_folders());
    ASSERT_FALSE(profile) << name;
    EXPECT_EQ(profile.error().front().code, ErrorCode::kNotFound);
  }
  device.profile = "h100-sxm5-80gb";
  const Error error = device_profile(device, source_folders()).error().front();
  EXPECT_EQ(error.path, "cluster.accelerator.profile");
  EXPECT_NE(error.hint.find("h100-sxm5-80g"), std::string::npos) << error.hint;
}

TEST(DeviceProfile, IsItsDataSheetWhereTheDeviceNamesNone) {
  Accelerator device = h100();
  EXPECT_EQ(device_profile(device, source_folders())->name, device.profile);
  device.profile.clear();
  EXPECT_EQ(device_profile(device, source_folders())->provenance, Provenance::kDataSheet);
}

}  // namespace
}  // namespace stepcast
