// SPDX-License-Identifier: Apache-2.0
// All calls go to non-blocking communicators: a rank that never comes is a time limit here, where
// a blocking call would hang.
#include "comm/nccl/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/idle.h"
#include "comm/nccl/nccl_library.h"
#include "core/assert.h"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw CommunicationError(fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

std::string text_of(ncclResult_t code, ncclComm_t comm) {
  const char* last = nccl().get_last_error(comm);
  const std::string more = last == nullptr || *last == 0 ? "" : fmt::format(" ({})", last);
  return nccl().get_error_string(code) + more;
}

ncclDataType_t type_of(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return ncclFloat32;
    case DataType::kFp16:
      return ncclFloat16;
    case DataType::kBf16:
      return ncclBfloat16;
    case DataType::kFp8:  // moved, never summed: its numbers have scales of their own
      return ncclInt8;
    default:
      throw CommunicationError("NCCL moves fp32, fp16, bf16 and fp8 here");
  }
}

// The library's communicator and stream; goes when the last request of it has gone.
struct Group {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0, size = 1;
  std::chrono::milliseconds limit{60000};
  bool aborted = false;

  Group() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    // Work that is still queued belongs to requests that nobody waited for. Other ranks may never
    // come to it.
    if (comm != nullptr && !aborted) {
      if (cudaStreamQuery(stream) == cudaSuccess && is_finalized()) {
        nccl().comm_destroy(comm);
      } else {
        nccl().comm_abort(comm);
      }
    }
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  bool is_finalized() {
    const auto deadline = Clock::now() + limit;
    Idle idle;
    ncclResult_t code = nccl().comm_finalize(comm);
    while (code == ncclInProgress && Clock::now() < deadline) {
      idle.pause();
      if (nccl().comm_get_async_error(comm, &code) != ncclSuccess) return false;
    }
    return code == ncclSuccess;
  }

  [[noreturn]] void fail(const std::string& why) {
    if (comm != nullptr && !aborted) nccl().comm_abort(comm);
    aborted = true;
    throw CommunicationError(fmt::format("NCCL, rank {} of {}: {}", rank, size, why));
  }
  [[noreturn]] void fail_late(const char* call) {
    fail(fmt::format("{} has not ended within {} s: a rank is missing", call,
                     std::chrono::duration<double>(limit).count()));
  }
  // Throws if the library has found an error since: a peer died, or a cable failed.
  void look_for_errors() {
    if (aborted) throw CommunicationError("NCCL: the group was ended by an earlier error");
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl().comm_get_async_error(comm, &state);
    if (asked != ncclSuccess) fail(text_of(asked, comm));
    if (state != ncclSuccess && state != ncclInProgress) fail(text_of(state, comm));
  }
  // Waits for a new group's handle: the library may fill it in after this group says that the call
  // is over (NVIDIA/nccl issue 1472; 2.28 on an H200).
  void wait_for(const ncclComm_t& handle, const char* call) {
    const auto deadline = Clock::now() + limit;
    Idle idle;
    while (static_cast<const volatile ncclComm_t&>(handle) == nullptr) {
      look_for_errors();
      if (Clock::now() > deadline) fail_late(call);
      idle.pause();
    }
  }
  // Waits until the call that returned `code` is over.
  void settle(ncclResult_t code, const char* call) {
    const auto deadline = Clock::now() + limit;
    Idle idle;
    while (code == ncclInProgress) {
      if (Clock::now() > deadline) fail_late(call);
      idle.pause();
      const ncclResult_t asked = nccl().comm_get_async_error(comm, &code);
      if (asked != ncclSuccess) code = asked;
    }
    if (code != ncclSuccess) fail(fmt::format("{}: {}", call, text_of(code, comm)));
  }
};

class NcclRequest final : public Request {
 public:
  NcclRequest(std::shared_ptr<Group> group, const char* name)
      : group_(std::move(group)), name_(name), deadline_(Clock::now() + group_->limit) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event_, group_->stream), "cudaEventRecord");
  }
  ~NcclRequest() override { cudaEventDestroy(event_); }

  bool test() override {
    if (ended_) return true;
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaSuccess) {
      ended_ = true;
      return true;
    }
    if (state != cudaErrorNotReady) check(state, name_);
    group_->look_for_errors();
    if (Clock::now() > deadline_) {
      group_->fail(fmt::format("{} has not ended within {} s", name_,
                               std::chrono::duration<double>(group_->limit).count()));
    }
    return false;
  }
  void wait() override {
    Idle idle;
    while (!test()) idle.pause();
  }
  std::int64_t moves() const override { return ended_ ? 1 : 0; }

 private:
  const std::shared_ptr<Group> group_;
  const char* const name_;
  const Clock::time_point deadline_;
  cudaEvent_t event_ = nullptr;
  bool ended_ = false;
};

class NcclCommunicator final : public DeviceCommunicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank; }
  int size() const override { return group_->size; }
  void set_time_limit(std::chrono::milliseconds limit) override { group_->limit = limit; }

  std::unique_ptr<DeviceCommunicator> split(int color) override {
    auto part = std::make_shared<Group>();
    part->limit = group_->limit;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    group_->settle(nccl().comm_split(group_->comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color,
                                     group_->rank, &part->comm, &config),
                   "ncclCommSplit");
    if (color < 0) return nullptr;
    group_->wait_for(part->comm, "ncclCommSplit");
    part->settle(ncclInProgress, "ncclCommSplit");
    part->settle(nccl().comm_user_rank(part->comm, &part->rank), "ncclCommUserRank");
    part->settle(nccl().comm_count(part->comm, &part->size), "ncclCommCount");
    return std::make_unique<NcclCommunicator>(std::move(part));
  }

  // One rank alone calls ncclCommRegister; all of them make a window together.
  std::shared_ptr<void> register_memory(void* data, std::int64_t bytes) override {
    void* handle = nullptr;
    group_->settle(
        nccl().comm_register(group_->comm, data, static_cast<std::size_t>(bytes), &handle),
        "ncclCommRegister");
    if (handle == nullptr) return nullptr;
    return {handle, [group = group_](void* registered) {
              if (!group->aborted) nccl().comm_deregister(group->comm, registered);
            }};
  }

  std::shared_ptr<void> allocate(std::int64_t bytes) override {
    void* data = nullptr;
    group_->settle(
        nccl().mem_alloc(&data, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))),
        "ncclMemAlloc");
    std::shared_ptr<void> memory(data, [](void* own) { nccl().mem_free(own); });
    std::shared_ptr<void> handle = register_window(data, bytes);
    if (handle == nullptr) handle = register_memory(data, bytes);
    return {data, [memory, handle](void*) mutable {
              handle.reset();  // before the memory that it registers
              memory.reset();
            }};
  }

  DeviceStream stream() const override { return group_->stream; }

  Pending start_all_reduce(DeviceBuffer data, Reduction reduction, DeviceStream after) override {
    const ncclDataType_t type = type_of(data.type);
    const ncclRedOp_t operation = reduction == Reduction::kSum ? ncclSum : ncclMax;
    return start("all-reduce", after, [&](Group& g) {
      return nccl().all_reduce(data.data, data.data, count(data), type, operation, g.comm,
                               g.stream);
    });
  }

  Pending start_all_gather(DeviceBuffer data, DeviceStream after) override {
    const ncclDataType_t type = type_of(data.type);
    return start("all-gather", after, [&](Group& g) {
      if (data.count % g.size == 0) {
        return nccl().all_gather(slice(data, g.rank), data.data, count(data) / ranks(), type,
                                 g.comm, g.stream);
      }
      return by_slices(data, [&](void* part, std::size_t elements, int owner) {
        return nccl().broadcast(part, part, elements, type, owner, g.comm, g.stream);
      });
    });
  }

  Pending start_reduce_scatter(DeviceBuffer data, DeviceStream after) override {
    const ncclDataType_t type = type_of(data.type);
    return start("reduce-scatter", after, [&](Group& g) {
      if (data.count % g.size == 0) {
        return nccl().reduce_scatter(data.data, slice(data, g.rank), count(data) / ranks(), type,
                                     ncclSum, g.comm, g.stream);
      }
      return by_slices(data, [&](void* part, std::size_t elements, int owner) {
        return nccl().reduce(part, part, elements, type, ncclSum, owner, g.comm, g.stream);
      });
    });
  }

  Pending start_broadcast(DeviceBuffer data, int root, DeviceStream after) override {
    const ncclDataType_t type = type_of(data.type);
    return start("broadcast", after, [&](Group& g) {
      return nccl().broadcast(data.data, data.data, count(data), type, root, g.comm, g.stream);
    });
  }

  Pending start_all_to_all(DeviceBuffer send, DeviceBuffer receive, DeviceStream after) override {
    if (send.count % size() != 0 || receive.count != send.count) {
      throw CommunicationError(fmt::format("an all-to-all of {} elements into {} among {} ranks",
                                           send.count, receive.count, size()));
    }
    std::vector<Message> messages;
    for (int peer = 0; peer < size(); ++peer) {
      const std::int64_t part = send.count / size();
      messages.push_back({peer, true, {slice(send, peer), part, send.type}});
      messages.push_back({peer, false, {slice(receive, peer), part, receive.type}});
    }
    return start_messages(messages, after);
  }

  Pending start_messages(const std::vector<Message>& messages, DeviceStream after) override {
    for (const Message& message : messages) type_of(message.data.type);  // throws before anything
    return start("messages", after, [&](Group& g) {
      nccl().group_start();
      for (const Message& message : messages) {
        const DeviceBuffer& data = message.data;
        if (message.sends) {
          nccl().send(data.data, count(data), type_of(data.type), message.peer, g.comm, g.stream);
        } else {
          nccl().receive(data.data, count(data), type_of(data.type), message.peer, g.comm,
                         g.stream);
        }
      }
      return nccl().group_end();  // returns what went wrong with any of them
    });
  }

  void hold(DeviceStream stream) override { order(group_->stream, stream); }

 private:
  static std::size_t count(const DeviceBuffer& data) {
    return static_cast<std::size_t>(data.count);
  }
  std::size_t ranks() const { return static_cast<std::size_t>(group_->size); }
  void* slice(const DeviceBuffer& data, int owner) const {
    return static_cast<std::byte*>(data.data) +
           slice_of(data.count, group_->size, owner).begin * size_of(data.type);
  }

  // Null where the library has no windows, or the machine cannot have them.
  std::shared_ptr<void> register_window(void* data, std::int64_t bytes) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    if (nccl().window_register == nullptr) return nullptr;
    ncclWindow_t window = nullptr;
    group_->settle(nccl().window_register(group_->comm, data, static_cast<std::size_t>(bytes),
                                          &window, NCCL_WIN_COLL_SYMMETRIC),
                   "ncclCommWindowRegister");
    if (window == nullptr) return nullptr;
    return {static_cast<void*>(window), [group = group_](void* registered) {
              if (group->aborted) return;
              nccl().window_deregister(group->comm, static_cast<ncclWindow_t>(registered));
            }};
#else
    static_cast<void>(data), static_cast<void>(bytes);
    return nullptr;
#endif
  }

  // Uneven slices, each with its owner as root.
  template <class Call>
  ncclResult_t by_slices(const DeviceBuffer& data, Call call) {
    nccl().group_start();
    for (int owner = 0; owner < group_->size; ++owner) {
      const std::int64_t elements = slice_of(data.count, group_->size, owner).size();
      if (elements > 0) call(slice(data, owner), static_cast<std::size_t>(elements), owner);
    }
    return nccl().group_end();
  }

  // `second` goes on behind what `first` holds so far.
  static void order(cudaStream_t first, DeviceStream second) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t recorded = cudaEventRecord(event, first);
    const cudaError_t waits = recorded == cudaSuccess
                                  ? cudaStreamWaitEvent(static_cast<cudaStream_t>(second), event, 0)
                                  : recorded;
    cudaEventDestroy(event);  // the library keeps it until it has been waited for
    check(waits, "cudaStreamWaitEvent");
  }

  template <class Call>
  Pending start(const char* name, DeviceStream after, Call call) {
    group_->look_for_errors();
    // Its own stream keeps order by itself, without the host's time for an event.
    if (after != group_->stream) order(static_cast<cudaStream_t>(after), group_->stream);
    group_->settle(call(*group_), name);
    return std::make_unique<NcclRequest>(group_, name);
  }

  const std::shared_ptr<Group> group_;
};

}  // namespace

std::optional<std::string> why_no_nccl() {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code != cudaSuccess) return fmt::format("no GPU: {}", cudaGetErrorString(code));
  if (devices == 0) return "no GPU: the driver sees none";
  return why_no_nccl_library();
}

std::unique_ptr<DeviceCommunicator> make_nccl_world(const NcclRank& rank, const ShareBytes& share,
                                                    std::chrono::milliseconds limit) {
  if (const auto why = why_no_nccl()) {
    throw CommunicationError(
        fmt::format("rank {} cannot communicate by NCCL: {}", rank.rank, *why));
  }
  check(cudaSetDevice(rank.device), "cudaSetDevice");
  ncclUniqueId id{};
  if (rank.rank == 0) {
    const ncclResult_t made = nccl().get_unique_id(&id);
    if (made != ncclSuccess) throw CommunicationError("ncclGetUniqueId: " + text_of(made, nullptr));
  }
  std::vector<std::byte> bytes(sizeof id);
  std::memcpy(bytes.data(), &id, sizeof id);
  bytes = share(bytes);
  if (bytes.size() != sizeof id) throw CommunicationError("rank 0 shared no id of this NCCL");
  std::memcpy(&id, bytes.data(), sizeof id);
  auto group = std::make_shared<Group>();
  group->rank = rank.rank;
  group->size = rank.size;
  group->limit = limit;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  group->settle(nccl().comm_init_rank_config(&group->comm, rank.size, id, rank.rank, &config),
                "ncclCommInitRank");
  return std::make_unique<NcclCommunicator>(std::move(group));
}

}  // namespace stepcast
