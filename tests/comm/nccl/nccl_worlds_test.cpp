// SPDX-License-Identifier: Apache-2.0
// GroupContract on NcclCommunicator, over the stand-in for NCCL and CUDA's runtime.
#include "comm/contract.h"
#include "emulated_nccl.h"
#include "host_view.h"
#include "nccl_world.h"

namespace stepcast {
namespace {

WorldUnderTest gpus(int ranks) {
  return {.name = std::to_string(ranks) + "gpus",
          .as_each_rank =
              [ranks](const std::function<void(Communicator&)>& body) {
                const int before = emulated::nccl_use().communicators;
                emulated::as_each_gpu(ranks,
                                      [&](auto world) { body(*host_view(std::move(world))); });
                EXPECT_EQ(emulated::nccl_use().communicators, before);
              },
          .adds_in_the_order_of_the_ring = false};
}

INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract,
                         testing::Values(gpus(1), gpus(2), gpus(3), gpus(4), gpus(5)),
                         [](const auto& parameter) { return parameter.param.name; });
// NCCL does not promise this.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorContract);

}  // namespace
}  // namespace stepcast
