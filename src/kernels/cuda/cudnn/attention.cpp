// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/attention.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <limits>
#include <map>

#include "core/assert.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn/attention_graph.h"
#include "kernels/cuda/cudnn/plan.h"
#include "kernels/cuda/device_memory.h"

namespace stepcast::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::size_t kKeptPart = 64;  // of the device's memory

Descriptor this_device() {
  std::int32_t device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  Descriptor out(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  out.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, device).finalize();
  return out;
}

// Cases that the library accepts, or claims to accept, but that its makers' frontend refuses.
std::optional<std::string> why_not_known(const AttentionProblem& problem) {
  const std::int64_t sequence = problem.shape.sequence, keys = problem.shape.key_rows();
  if (problem.type != DataType::kBf16 && problem.type != DataType::kFp16) {
    return "cuDNN's attention is for bf16 and fp16";
  }
  if (!problem.aligned) return "cuDNN's attention is for heads at multiples of 16 bytes";
  if (problem.shape.offset() > 0) return "cuDNN's masks here begin with the first key";
  const std::size_t version = cudnn().get_version();
  if (version == 91000 || version == 91001) {
    return cudnn_name() + "'s attention has known faults, which 9.10.2 mends";
  }
  if (!problem.backward) return std::nullopt;
  if (sequence == 1 || keys == 1) return "cuDNN's attention has no backward pass of single tokens";
  if (version <= 91500 && (sequence % 128 != 0 || keys % 128 != 0)) {
    return cudnn_name() + "'s backward pass is for multiples of 128 tokens, before 9.16";
  }
  return std::nullopt;
}

struct PlannedForward {
  PlannedForward(const Descriptor& device, const AttentionProblem& problem)
      : of(problem), plan(device, of.graph) {}
  ForwardGraph of;
  Plan plan;
  bool has_handle = false;  // the plan was made again
};

struct PlannedBackward {
  PlannedBackward(const Descriptor& device, const AttentionProblem& problem, bool same_bits)
      : of(problem, same_bits), plan(device, of.graph) {}
  BackwardGraph of;
  Plan plan;
  bool has_handle = false;
};

struct Planned {
  std::optional<std::string> why_not;
  std::unique_ptr<PlannedForward> forward;
  std::unique_ptr<PlannedBackward> backward;
  std::int64_t sums_bytes = 0;  // of gradients of queries, before the plan's workspace

  std::int64_t workspace_bytes() const {
    return sums_bytes + (forward ? forward->plan : backward->plan).workspace_bytes();
  }
};

template <typename T>
void* untyped(const T* data) {
  return const_cast<T*>(data);  // the library's arrays have one type
}

}  // namespace

std::string cudnn_name() {
  const std::size_t version = cudnn().get_version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

struct CudnnAttention::Plans {
  ~Plans() {
    if (handle != nullptr) cudnn().destroy(handle);
  }

  Planned& plan(const AttentionProblem& problem) {
    const auto found = planned.find(problem.sort_key());
    if (found != planned.end()) return found->second;
    return planned.emplace(problem.sort_key(), make(problem)).first->second;
  }

  Planned make(const AttentionProblem& problem) {
    Planned out;
    if ((out.why_not = why_no_cudnn())) return out;
    if ((out.why_not = why_not_known(problem))) return out;
    try {
      if (!device) device.emplace(this_device());
      if (problem.backward) {
        out.backward = std::make_unique<PlannedBackward>(*device, problem, same_bits);
      } else {
        out.forward = std::make_unique<PlannedForward>(*device, problem);
      }
    } catch (const CudaError& error) {
      return {error.what(), nullptr, nullptr, 0};
    }
    if (out.backward && out.backward->of.query_sums != 0) {
      const AttentionShape& shape = problem.shape;
      const std::int64_t bytes = 4 * shape.batch * shape.heads * shape.sequence * shape.head_dim;
      out.sums_bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (const std::int64_t most = largest_room(); out.workspace_bytes() > most) {
      out.why_not = fmt::format("cuDNN's attention wants {} MiB of workspace, and may have {}",
                                out.workspace_bytes() >> 20, most >> 20);
    }
    return out;
  }

  // The room that there is makes way for a larger one. A part of what is free is kept for tensors
  // that are not there yet.
  std::int64_t largest_room() const {
    if (most_workspace) return *most_workspace;
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<std::int64_t>(free) + room_bytes -
           static_cast<std::int64_t>(total / kKeptPart);
  }

  std::byte* make_room(std::int64_t bytes) {
    if (bytes > room_bytes) {
      room.reset();  // what still runs has ended when it is freed
      room_bytes = 0;
      room.emplace(static_cast<std::size_t>(bytes));
      room_bytes = bytes;
    }
    return room ? static_cast<std::byte*>(room->data()) : nullptr;
  }

  cudnnHandle_t on(Stream stream) {
    if (handle == nullptr) check_cudnn(cudnn().create(&handle), "cudnnCreate");
    check_cudnn(cudnn().set_stream(handle, static_cast<cudaStream_t>(stream)), "cudnnSetStream");
    return handle;
  }

  // `execute` makes room for the workspace of the plan and runs it.
  template <typename Pass, typename Execute>
  void run(Pass& pass, Stream stream, const Execute& execute) {
    try {
      execute();
    } catch (const CudaError&) {
      if (pass.has_handle) throw;
      pass.plan = Plan(on(stream), pass.of.graph);
      pass.has_handle = true;
      ++made_again;
      execute();
    }
  }

  bool same_bits;
  std::optional<std::int64_t> most_workspace;
  std::optional<Descriptor> device;
  cudnnHandle_t handle = nullptr;
  std::map<AttentionProblem::Key, Planned> planned;
  std::optional<DeviceMemory> room;
  std::int64_t room_bytes = 0;
  int made_again = 0;
};

CudnnAttention::CudnnAttention(bool same_bits, std::optional<std::int64_t> most_workspace)
    : plans_(new Plans{same_bits, most_workspace, {}, nullptr, {}, {}, 0, 0}) {}
CudnnAttention::~CudnnAttention() = default;

std::optional<std::string> CudnnAttention::why_not(const AttentionProblem& problem) {
  return plans_->plan(problem).why_not;
}

std::int64_t CudnnAttention::workspace_bytes() const { return plans_->room_bytes; }
int CudnnAttention::plans_made_again() const { return plans_->made_again; }

template <typename T>
void CudnnAttention::run(const AttentionShape& shape, const ForwardArrays<T>& arrays,
                         Stream stream) {
  Planned& planned = plans_->plan(problem_of(shape, arrays));
  STEPCAST_ASSERT(!planned.why_not, "the caller has asked for a reason");
  const ForwardGraph& of = planned.forward->of;
  auto scale = score_scale<float>(shape);
  float hidden = std::numeric_limits<float>::lowest();
  std::vector<Plan::Binding> bindings = {
      {of.query, untyped(arrays.query.data)}, {of.key, untyped(arrays.key.data)},
      {of.value, untyped(arrays.value.data)}, {of.context, arrays.context.data},
      {of.log_sum_exp, arrays.log_sum_exp},   {of.scale, &scale}};
  if (of.hidden != 0) bindings.push_back({of.hidden, &hidden});
  plans_->run(*planned.forward, stream, [&] {
    std::byte* room = plans_->make_room(planned.workspace_bytes());
    planned.forward->plan.run(plans_->on(stream), bindings, room);
  });
}

template <typename T>
void CudnnAttention::run(const AttentionShape& shape, const BackwardArrays<T>& arrays,
                         Stream stream) {
  Planned& planned = plans_->plan(problem_of(shape, arrays));
  STEPCAST_ASSERT(!planned.why_not, "the caller has asked for a reason");
  const BackwardGraph& of = planned.backward->of;
  auto scale = score_scale<float>(shape);
  float hidden = std::numeric_limits<float>::lowest();
  float one = 1;
  std::vector<Plan::Binding> bindings = {
      {of.query, untyped(arrays.query.data)},
      {of.key, untyped(arrays.key.data)},
      {of.value, untyped(arrays.value.data)},
      {of.context, untyped(arrays.context.data)},
      {of.log_sum_exp, untyped(arrays.log_sum_exp)},
      {of.context_gradient, untyped(arrays.context_gradient.data)},
      {of.query_gradient, arrays.query_gradient.data},
      {of.key_gradient, arrays.key_gradient.data},
      {of.value_gradient, arrays.value_gradient.data},
      {of.row_products, arrays.row_products},
      {of.scale, &scale},
      {of.one, &one}};
  if (of.hidden != 0) bindings.push_back({of.hidden, &hidden});
  plans_->run(*planned.backward, stream, [&] {
    std::byte* room = plans_->make_room(planned.workspace_bytes());
    std::vector<Plan::Binding> with_sums = bindings;
    if (of.query_sums != 0) {
      with_sums.push_back({of.query_sums, room});
      check(cudaMemsetAsync(room, 0, planned.sums_bytes, static_cast<cudaStream_t>(stream)),
            "cudaMemsetAsync");  // what atomics add to
    }
    planned.backward->plan.run(plans_->on(stream), with_sums, room + planned.sums_bytes);
  });
}

#define STEPCAST_INSTANTIATE(T)                                                              \
  template void CudnnAttention::run(const AttentionShape&, const ForwardArrays<T>&, Stream); \
  template void CudnnAttention::run(const AttentionShape&, const BackwardArrays<T>&, Stream);
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
