// SPDX-License-Identifier: Apache-2.0
// Tests what needs no GPU, and one rank on one GPU where there is one.
#include "comm/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

using std::chrono::milliseconds;

TEST(Nccl, WithoutAGpuTheErrorSaysSo) {
  const auto why = why_no_nccl();
  if (!why) GTEST_SKIP() << "there is a GPU";
  const ShareBytes nobody = [](const std::vector<std::byte>& bytes) { return bytes; };
  try {
    make_nccl_world({.rank = 3, .size = 4, .device = 0}, nobody, milliseconds(1000));
    ADD_FAILURE() << "no error";
  } catch (const CommunicationError& error) {
    EXPECT_EQ(std::string(error.what()), "rank 3 cannot communicate by NCCL: " + *why);
  }
}

TEST(Nccl, OneRankAloneIsAWorld) {
  if (const auto why = why_no_nccl()) GTEST_SKIP() << *why;
  const ShareBytes alone = [](const std::vector<std::byte>& bytes) { return bytes; };
  const auto world = make_nccl_world({}, alone, milliseconds(60000));
  EXPECT_EQ(world->size(), 1);
  const auto part = world->split(0);
  ASSERT_NE(part, nullptr);
  part->start_messages({}, nullptr)->wait();
  EXPECT_EQ(world->split(-1), nullptr);
}

}  // namespace
}  // namespace stepcast
