// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/list_gpus.h"

#include <cuda_runtime_api.h>

#include "core/atomic_file.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "kernels/cuda/cuda_error.h"

namespace stepcast {

void list_gpus(const Job& job) {
  if (const auto why = cuda::why_no_gpu()) throw cuda::CudaError(*why);
  int count = 0;
  cuda::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  Json devices = Json::array();
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    devices.push_back(properties.name);
  }
  const Json out{{"devices", std::move(devices)}};
  const auto written = write_file_atomically(job.results + "/devices.json", json_text(out) + "\n");
  if (!written) throw JobFailure(written.error());
}

}  // namespace stepcast
