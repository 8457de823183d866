// SPDX-License-Identifier: Apache-2.0
// Groups of GPUs promise this beside the contract (comm/device_communicator.h), on the stand-ins
// for NCCL and CUDA's runtime: order of streams, messages, errors, time limits, what is given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "comm/nccl/nccl_communicator.h"
#include "comm/contract.h"
#include "emulated_nccl.h"
#include "kernels/emulated/runtime.h"
#include "nccl_world.h"

namespace stepcast {
namespace {

using emulated::as_each_gpu;
using std::chrono::milliseconds;
using World = std::unique_ptr<DeviceCommunicator>;
using Bytes = std::vector<std::byte>;

constexpr milliseconds kShort(200);

DeviceBuffer buffer(std::vector<float>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), DataType::kFp32};
}

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "no error";
}

::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << '\'' << text << "' has no '" << part << '\'';
}

class Stream {
 public:
  Stream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST(EmulatedNccl, AnOperationBeginsBehindWhatItsStreamHolds) {
  as_each_gpu(2, [](const World& world) {
    std::vector<float> data(1, -1.0F);
    const Stream compute;
    std::unique_ptr<Request> sum;
    {
      const emulated::HeldStream held(compute);
      emulated::enqueue(compute, [&](double now_s) {
        data[0] = 1.0F + static_cast<float>(world->rank());
        return now_s;
      });
      sum = world->start_all_reduce(buffer(data), Reduction::kSum, compute);
      std::this_thread::sleep_for(milliseconds(20));
      EXPECT_FALSE(sum->test());
    }
    sum->wait();
    EXPECT_EQ(data[0], 3.0F);
  });
}

TEST(EmulatedNccl, AHeldStreamGoesOnOnceOperationsHaveEnded) {
  as_each_gpu(2, [](const World& world) {
    std::vector<float> data(1, 1.0F);
    const Stream late, reader;
    float seen = 0;
    {
      const emulated::HeldStream held(late);
      world->start_all_reduce(buffer(data), Reduction::kSum, late);
      world->hold(reader);
      emulated::enqueue(reader, [&](double now_s) {
        seen = data[0];
        return now_s;
      });
      EXPECT_EQ(cudaStreamQuery(reader), cudaErrorNotReady);
    }
    cudaStreamSynchronize(reader);
    EXPECT_EQ(seen, 2.0F);
  });
}

TEST(EmulatedNccl, NeighboursExchangeInOneCall) {
  as_each_gpu(3, [](const World& world) {
    const int right = (world->rank() + 1) % 3, left = (world->rank() + 2) % 3;
    std::vector<float> sent = values_of(1, world->rank(), 1000), received(1000);
    world->start_messages({{right, true, buffer(sent)}, {left, false, buffer(received)}}, nullptr)
        ->wait();
    EXPECT_EQ(received, values_of(1, left, 1000));
  });
}

TEST(EmulatedNccl, MessagesOfAPairKeepTheirOrder) {
  as_each_gpu(2, [](const World& world) {
    std::vector<float> first = {1}, second = {2, 3};
    const bool sends = world->rank() == 0;
    if (!sends) first = {0}, second = {0, 0};
    const int peer = sends ? 1 : 0;
    world->start_messages({{peer, sends, buffer(first)}, {peer, sends, buffer(second)}}, nullptr)
        ->wait();
    EXPECT_EQ(first, std::vector<float>({1}));
    EXPECT_EQ(second, std::vector<float>({2, 3}));
  });
}

// The deadlock that groups exist for: both sides of an exchange send first.
TEST(EmulatedNccl, AnExchangeInTwoCallsStandsStillUntilTheTimeLimit) {
  as_each_gpu(2, [](const World& world) {
    world->set_time_limit(kShort);
    const int peer = 1 - world->rank();
    std::vector<float> sent(4), received(4);
    const auto send = world->start_messages({{peer, true, buffer(sent)}}, nullptr);
    const auto receive = world->start_messages({{peer, false, buffer(received)}}, nullptr);
    const std::string error = error_of([&] { receive->wait(); });
    // The first rank whose time limit passes ends the group; the other sees a peer that is gone.
    EXPECT_TRUE(error.find("messages has not ended within 0.2 s") != std::string::npos ||
                error.find("has died") != std::string::npos)
        << error;
  });
}

TEST(EmulatedNccl, MembersThatDifferInCountFindAnError) {
  as_each_gpu(3, [](const World& world) {
    std::vector<float> data(world->rank() == 2 ? 5 : 4);
    const std::string error =
        error_of([&] { world->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait(); });
    EXPECT_TRUE(has(error, "invalid usage")) << error;
    EXPECT_TRUE(has(error, "AllReduce of 5 elements")) << error;
    EXPECT_TRUE(has(error, "AllReduce of 4 elements")) << error;
  });
}

TEST(EmulatedNccl, MembersThatDifferInOrderFindAnError) {
  as_each_gpu(2, [](const World& world) {
    std::vector<float> a(4), b(4);
    std::unique_ptr<Request> first, second;
    const std::string error = error_of([&] {
      const auto sum = [&] { return world->start_all_reduce(buffer(a), Reduction::kSum, nullptr); };
      const auto told = [&] { return world->start_broadcast(buffer(b), 0, nullptr); };
      first = world->rank() == 0 ? sum() : told();
      second = world->rank() == 0 ? told() : sum();
      first->wait();
      second->wait();
    });
    EXPECT_TRUE(has(error, "AllReduce of 4 elements")) << error;
    EXPECT_TRUE(has(error, "Broadcast of 4 elements")) << error;
  });
}

TEST(EmulatedNccl, AMessageOfAnotherSizeIsAnErrorOfBothSides) {
  as_each_gpu(2, [](const World& world) {
    std::vector<float> data(world->rank() == 0 ? 3 : 7);
    const std::string error = error_of([&] {
      world->start_messages({{1 - world->rank(), world->rank() == 0, buffer(data)}}, nullptr)
          ->wait();
    });
    EXPECT_TRUE(has(error, "rank 0 sends 3 elements, rank 1 receives 7")) << error;
  });
}

TEST(EmulatedNccl, APeerThatNeverComesIsATimeLimit) {
  as_each_gpu(2, [](const World& world) {
    // Use a group, not the world, whose other member has to be there when it ends.
    const auto group = world->split(0);
    if (world->rank() == 1) {
      group->set_time_limit(kShort);
      std::vector<float> data(4);
      const std::string error = error_of(
          [&] { group->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait(); });
      EXPECT_EQ(error, "NCCL, rank 1 of 2: all-reduce has not ended within 0.2 s");
      // The group has ended for good: a later operation fails at once.
      EXPECT_EQ(error_of([&] { group->start_broadcast(buffer(data), 0, nullptr); }),
                "NCCL: the group was ended by an earlier error");
    }
    // Others go on.
    std::vector<float> data = {1};
    world->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait();
    EXPECT_EQ(data[0], 2.0F);
  });
}

TEST(EmulatedNccl, APeerThatDiesIsAnErrorLongBeforeTheTimeLimit) {
  as_each_gpu(3, [](const World& world) {
    auto group = world->split(0);  // its time limit is a minute
    std::vector<float> data(4);
    world->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait();  // all have come
    if (world->rank() == 2) {
      // This rank ends like a process with work under way: the communicator is aborted.
      const auto unfinished = group->start_messages({{0, false, buffer(data)}}, nullptr);
      group.reset();
    } else {
      const std::string error = error_of(
          [&] { group->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait(); });
      EXPECT_TRUE(has(error, "remote process exited")) << error;
    }
  });
}

TEST(EmulatedNccl, ARankThatDoesNotStartIsATimeLimitOfTheOthers) {
  Bytes id(sizeof(ncclUniqueId));
  ncclGetUniqueId(reinterpret_cast<ncclUniqueId*>(id.data()));
  const ShareBytes share = [&](const Bytes&) { return id; };
  const std::string error =
      error_of([&] { make_nccl_world({.rank = 0, .size = 2, .device = 0}, share, kShort); });
  EXPECT_EQ(error,
            "NCCL, rank 0 of 2: ncclCommInitRank has not ended within 0.2 s: a rank is missing");
}

TEST(EmulatedNccl, APartOfTheGroupMakesAGroup) {
  as_each_gpu(5, [](const World& world) {
    const auto part = world->split(world->rank() == 0 ? -1 : world->rank() % 2);
    if (world->rank() == 0) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    // Ranks 1 and 3, 2 and 4.
    EXPECT_EQ(part->size(), 2);
    EXPECT_EQ(part->rank(), (world->rank() - 1) / 2);
    std::vector<float> data = {static_cast<float>(world->rank())};
    part->start_all_reduce(buffer(data), Reduction::kSum, nullptr)->wait();
    EXPECT_EQ(data[0], world->rank() % 2 == 1 ? 4.0F : 6.0F);
  });
}

TEST(EmulatedNccl, SixteenBitTypesAreRoundedAsTheirs) {
  as_each_gpu(2, [](const World& world) {
    // 1 + 2^-8 is between two bf16, and goes to the even one, 1.
    std::vector<std::uint16_t> data = {
        static_cast<std::uint16_t>(world->rank() == 0 ? 0x3f80 : 0x3b80)};
    world->start_all_reduce({data.data(), 1, DataType::kBf16}, Reduction::kSum, nullptr)->wait();
    EXPECT_EQ(data[0], 0x3f80);
    const std::string error = error_of([&] {
      world->start_all_reduce({data.data(), 1, DataType::kInt64}, Reduction::kSum, nullptr);
    });
    EXPECT_TRUE(has(error, "fp32, fp16, bf16 and fp8")) << error;
  });
}

TEST(EmulatedNccl, RegisteredMemoryIsGivenBack) {
  const emulated::NcclUse before = emulated::nccl_use();
  as_each_gpu(2, [](const World& world) {
    const auto own = world->allocate(4 * sizeof(float));
    std::vector<float> other(4, 1.0F);
    const auto registered =
        world->register_memory(other.data(), static_cast<std::int64_t>(4 * sizeof(float)));
    auto* data = static_cast<float*>(own.get());
    std::fill_n(data, 4, 2.0F);
    world->start_all_reduce({data, 4, DataType::kFp32}, Reduction::kSum, nullptr)->wait();
    EXPECT_EQ(data[3], 4.0F);
    EXPECT_GE(emulated::nccl_use().registrations, 2);
  });
  const emulated::NcclUse after = emulated::nccl_use();
  EXPECT_EQ(after.registrations, before.registrations);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.communicators, before.communicators);
}

TEST(EmulatedNccl, EventsOnItsStreamTellTheTimeOfAnOperation) {
  emulated::set_nccl_cost([](const std::string& name, double bytes, int ranks) {
    EXPECT_EQ(name, "AllGather");
    EXPECT_EQ(ranks, 2);
    return 1e-6 * bytes;
  });
  as_each_gpu(2, [](const World& world) {
    std::vector<float> data(1000);  // 4000 bytes: 4 ms
    cudaEvent_t start = nullptr, end = nullptr;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    const auto on = static_cast<cudaStream_t>(world->stream());
    cudaEventRecord(start, on);
    world->start_all_gather(buffer(data), nullptr)->wait();
    cudaEventRecord(end, on);
    cudaEventSynchronize(end);
    float milliseconds_taken = 0;
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds_taken, start, end), cudaSuccess);
    EXPECT_NEAR(milliseconds_taken, 4.0, 1e-4);
    cudaEventDestroy(start);
    cudaEventDestroy(end);
  });
  emulated::set_nccl_cost(nullptr);
}

TEST(EmulatedNccl, WithoutAGpuTheErrorSaysSo) {
  emulated::set_device_count(0);
  const ShareBytes nobody = [](const Bytes& bytes) { return bytes; };
  const std::string error = error_of([&] { make_nccl_world({}, nobody, kShort); });
  emulated::set_device_count(8);
  EXPECT_EQ(error, "rank 0 cannot communicate by NCCL: no GPU: the driver sees none");
}

TEST(EmulatedNccl, ADeviceThatIsNotThereIsNamed) {
  const ShareBytes nobody = [](const Bytes& bytes) { return bytes; };
  EXPECT_EQ(error_of([&] { make_nccl_world({.rank = 0, .size = 1, .device = 9}, nobody, kShort); }),
            "cudaSetDevice: invalid device ordinal");
}

}  // namespace
}  // namespace stepcast
