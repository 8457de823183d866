// SPDX-License-Identifier: Apache-2.0
// What needs no GPU, and one rank on one GPU where there is one.
#include "comm/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include "comm/thread_world.h"

namespace stepcast {
namespace {

using std::chrono::milliseconds;

StoreValue some_bytes(unsigned seed) {
  StoreValue out;
  for (unsigned i = 0; i < 128; ++i) out.push_back(static_cast<std::byte>(seed * 31 + i * 7));
  return out;
}

TEST(Nccl, TheStoreBringsTheIdOfRankZeroToAll) {
  const TcpStoreServer server(0);
  TcpStore first("localhost", server.port(), milliseconds(5000));
  TcpStore second("localhost", server.port(), milliseconds(5000));
  EXPECT_EQ(share_by(first, "nccl", 0)(some_bytes(1)), some_bytes(1));
  EXPECT_EQ(share_by(second, "nccl", 1)(some_bytes(2)), some_bytes(1));
}

TEST(Nccl, ABroadcastBringsEveryBitOfTheId) {
  // All bytes, among them those that as floats would be NaN.
  StoreValue bytes;
  for (int i = 0; i < 128; ++i) bytes.push_back(i % 2 == 0 ? std::byte{0xff} : std::byte{0x7f});
  const auto world = thread_world(1);
  EXPECT_EQ(share_by(*world.front())(bytes), bytes);
}

TEST(Nccl, WithoutAGpuTheErrorSaysSo) {
  const auto why = why_no_nccl();
  if (!why) GTEST_SKIP() << "there is a GPU";
  const ShareBytes nobody = [](const StoreValue& bytes) { return bytes; };
  try {
    make_nccl_world({.rank = 3, .size = 4, .device = 0}, nobody, milliseconds(1000));
    ADD_FAILURE() << "no error";
  } catch (const CommunicationError& error) {
    EXPECT_EQ(std::string(error.what()), "rank 3 cannot communicate by NCCL: " + *why);
  }
}

TEST(Nccl, OneRankAloneIsAWorld) {
  if (const auto why = why_no_nccl()) GTEST_SKIP() << *why;
  const ShareBytes alone = [](const StoreValue& bytes) { return bytes; };
  const auto world = make_nccl_world({}, alone, milliseconds(60000));
  EXPECT_EQ(world->size(), 1);
  const auto part = world->split(0);
  ASSERT_NE(part, nullptr);
  part->start_messages({}, nullptr)->wait();
  EXPECT_EQ(world->split(-1), nullptr);
}

}  // namespace
}  // namespace stepcast
