// SPDX-License-Identifier: Apache-2.0
// How much of its GPU's memory a process uses, as the driver counts it: context, libraries,
// communicators, tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stepcast {

class DeviceUse {
 public:
  // Make it before the first call that needs a context: what others use then is not this process's.
  DeviceUse();

  // Looks at the calling thread's current GPU. If the driver's management library says nothing, all
  // that the GPU lacks is taken for this process's. Throws CudaError.
  std::int64_t bytes() const;

 private:
  std::map<std::string, std::int64_t> before_;  // by the GPU's place on its bus
};

}  // namespace stepcast
