// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/plan.h"

#include <string>

#include "kernels/cuda/cuda_error.h"

namespace stepcast::cuda {

struct Plan::Target {
  const Descriptor* device;  // null: that of the handle
  cudnnHandle_t handle;
};

namespace {

std::vector<Descriptor> proposed(const Descriptor* device, const Descriptor& operations,
                                 cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (device != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  heuristics.finalize();
  return heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

Descriptor first_plan(const Descriptor* device, cudnnHandle_t handle,
                      const Descriptor& operations) {
  std::string why = "cuDNN proposes no engine";
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      for (const Descriptor& configuration : proposed(device, operations, mode)) {
        try {
          Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
          if (device != nullptr) {
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
          } else {
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
          }
          plan.finalize();
          return plan;
        } catch (const CudaError& error) {
          why = error.what();
        }
      }
    } catch (const CudaError& error) {
      why = error.what();
    }
  }
  throw CudaError(why);
}

}  // namespace

Plan::Plan(const Descriptor& device, const Graph& graph) : Plan(Target{&device, nullptr}, graph) {}
Plan::Plan(cudnnHandle_t handle, const Graph& graph) : Plan(Target{nullptr, handle}, graph) {}

Plan::Plan(const Target& target, const Graph& graph)
    : operations_(graph.finished(target.handle)),
      plan_(first_plan(target.device, target.handle, operations_)),
      workspace_bytes_(plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void Plan::run(cudnnHandle_t handle, const std::vector<Binding>& bindings, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> data;
  for (const Binding& binding : bindings) {
    ids.push_back(static_cast<std::int64_t>(binding.tensor));
    data.push_back(binding.data);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize();
  check_cudnn(cudnn().execute(handle, plan_.handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace stepcast::cuda
