// SPDX-License-Identifier: Apache-2.0
// A graph made ready to run on a device.
#pragma once

#include <utility>
#include <vector>

#include "kernels/cuda/cudnn/graph.h"

namespace stepcast::cuda {

class Plan {
 public:
  struct Binding {
    Graph::Tensor tensor;
    void* data;  // of a tensor by value: on the host
  };

  // The first engine that can run it, of those that heuristics propose (mode A, then the fallback).
  // `device`: finalized properties of a device. Throws CudaError with the library's last reason.
  Plan(const Descriptor& device, const Graph& graph);
  // Plans for the device that is there. The library's makers plan so in their frontend, and its
  // oldest versions know nothing else.
  Plan(cudnnHandle_t handle, const Graph& graph);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  void run(cudnnHandle_t handle, const std::vector<Binding>& bindings, void* workspace) const;

 private:
  struct Target;
  Plan(const Target& target, const Graph& graph);

  Descriptor operations_, plan_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace stepcast::cuda
