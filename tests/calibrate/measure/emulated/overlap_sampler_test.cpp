// SPDX-License-Identifier: Apache-2.0
// Products beside copies and collectives on the emulated device, whose streams do not slow each
// other: rates come out as they were set, and slowdowns as 1.
#include "calibrate/measure/gpu/overlap_sampler.h"

#include <gtest/gtest.h>

#include "emulated_nccl.h"
#include "kernels/emulated/runtime.h"
#include "nccl_world.h"

namespace stepcast {
namespace {

constexpr double kProduct_s = 2e-3;

GpuCall product(double seconds = kProduct_s) {
  return {[seconds](cuda::Stream stream) {
            emulated::enqueue(static_cast<cudaStream_t>(stream),
                              [seconds](double now_s) { return now_s + seconds; });
          },
          0};
}

TEST(OverlapSampler, TellsTheRatesOfCopies) {
  emulated::set_copy_rates({.to_device = 4e9, .to_host = 2e9, .on_device = 8e9});
  // 1 MiB takes 0.26 ms at 4 GB/s.
  const auto copies = OverlapSampler(product(), {.host = 1 << 20, .device = 1 << 22}).copies();
  emulated::set_copy_rates({});
  // Events tell milliseconds in fp32.
  EXPECT_NEAR(copies.to_device->bytes_per_s.value() / 4e9, 1, 1e-4);
  EXPECT_NEAR(copies.to_host->bytes_per_s.value() / 2e9, 1, 1e-4);
  EXPECT_NEAR(copies.on_device->bytes_per_s.value() / 8e9, 1, 1e-4);
  for (const auto& told : {copies.to_device, copies.to_host, copies.on_device}) {
    EXPECT_NEAR(told->product_slowdown, 1, 1e-4);
    EXPECT_NEAR(told->slowdown, 1, 1e-4);
  }
}

// Ranks agree on how often they call a collective, whatever each of them sees: one has products
// that take three times as long.
TEST(OverlapSampler, RanksOfDifferentSpeedMeetInEveryCollective) {
  emulated::set_nccl_cost([](const std::string&, double, int) { return 1e-3; });
  emulated::as_each_gpu(3, [](const std::unique_ptr<DeviceCommunicator>& world) {
    DeviceCollectives backend(*world, {0, 0, 0}, {.largest = 4096});
    const auto meeting = backend.meet(backend.all_reduce_within_a_node());
    ASSERT_TRUE(meeting.takes_part);
    OverlapSampler sampler(product(world->rank() == 1 ? 3 * kProduct_s : kProduct_s));
    const auto told = sampler.collective(backend, meeting.placement.size(), 4096);
    EXPECT_EQ(told.ranks, 3);
    EXPECT_EQ(told.bytes, 4096);
    EXPECT_NEAR(told.product_slowdown, 1, 1e-4);
    EXPECT_NEAR(told.slowdown, 1, 1e-4);
  });
  emulated::set_nccl_cost(nullptr);
}

TEST(OverlapSampler, TheGroupBesideProductsLiesWithinANodeWhereThereIsOne) {
  emulated::as_each_gpu(4, [](const std::unique_ptr<DeviceCommunicator>& world) {
    DeviceCollectives two_nodes(*world, {0, 0, 1, 1}, {.largest = 4096});
    EXPECT_EQ(two_nodes.meet(two_nodes.all_reduce_within_a_node()).placement,
              std::vector<std::int64_t>({0, 0}));
    DeviceCollectives one_each(*world, {0, 1, 2, 3}, {.largest = 4096});
    EXPECT_EQ(one_each.meet(one_each.all_reduce_within_a_node()).placement,
              std::vector<std::int64_t>({0, 1, 2, 3}));
  });
}

}  // namespace
}  // namespace stepcast
