// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/cudnn_library.h"

#include <fmt/format.h>

#include "core/shared_library.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn/attention.h"

namespace stepcast::cuda {
namespace {

// The first with descriptions of devices in place of handles.
constexpr const char* kOldestName = "9.8";
constexpr std::size_t kOldest = 90800;

struct Loaded {
  CudnnLibrary library{};
  std::optional<std::string> why_not;
};

Loaded load() {
  SharedLibrary file("cuDNN", "libcudnn.so.9", kOldestName);
  CudnnLibrary to{};
  file.need(to.get_version, "cudnnGetVersion");
  file.need(to.get_error_string, "cudnnGetErrorString");
  file.need(to.get_last_error_string, "cudnnGetLastErrorString");
  file.need(to.create, "cudnnCreate");
  file.need(to.destroy, "cudnnDestroy");
  file.need(to.set_stream, "cudnnSetStream");
  file.need(to.create_descriptor, "cudnnBackendCreateDescriptor");
  file.need(to.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  file.need(to.set_attribute, "cudnnBackendSetAttribute");
  file.need(to.get_attribute, "cudnnBackendGetAttribute");
  file.need(to.finalize, "cudnnBackendFinalize");
  file.need(to.execute, "cudnnBackendExecute");
  if (file.why_not()) return {to, file.why_not()};
  const std::size_t version = to.get_version();
  if (version >= kOldest) return {to, {}};
  return {to, fmt::format("no cuDNN: its library is version {}.{}.{}: {} or later is needed",
                          version / 10000, version / 100 % 100, version % 100, kOldestName)};
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::optional<std::string> why_no_cudnn() { return loaded().why_not; }

const CudnnLibrary& cudnn() {
  if (loaded().why_not) throw CudaError(*loaded().why_not);
  return loaded().library;
}

}  // namespace stepcast::cuda
