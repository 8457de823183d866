// SPDX-License-Identifier: Apache-2.0
// Which frameworks have launch files, and what is said of the others.
#include "recipes/launch_format.h"

#include <gtest/gtest.h>

#include <set>

#include "layout/framework.h"

namespace stepcast {
namespace {

TEST(LaunchFormats, AreOfOneFrameworkEach) {
  std::set<std::string> launched;
  for (const LaunchFormat* format : launch_formats()) {
    EXPECT_EQ(launch_format_of(framework_named(format->framework)), format);
    EXPECT_EQ(launch_format_named(format->name), format);
    EXPECT_TRUE(launched.insert(format->framework).second) << format->framework;
  }
  EXPECT_EQ(launch_format_of(own_executor()), nullptr);
}

TEST(LaunchFormats, OfTheOwnExecutorThereAreNone) {
  const Error error = no_launch_files(traits_of(own_executor()));
  EXPECT_EQ(error.message, "native is stepcast's own executor, which no launcher starts");
  EXPECT_EQ(error.hint, "megatron, deepspeed or fsdp; stepcast validate runs native");
}

// A framework as docs/extending.md adds one that leaves its launch files out.
TEST(LaunchFormats, AFrameworkWithoutThemIsNotTakenForTheExecutor) {
  FrameworkTraits traits = traits_of(framework_named("megatron"));
  traits.name = "colossal";
  const Error error = no_launch_files(traits);
  EXPECT_EQ(error.path, "training.framework");
  EXPECT_EQ(error.message, "stepcast has no launch files of colossal");
  EXPECT_EQ(error.hint, "megatron, deepspeed or fsdp");
}

}  // namespace
}  // namespace stepcast
