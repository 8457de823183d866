// SPDX-License-Identifier: Apache-2.0
// A descriptor of cuDNN's backend API: attributes are set, then it is finalized; what it then
// computes can be asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/cudnn/cudnn_library.h"

namespace stepcast::cuda {

template <typename T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
inline constexpr auto kAttributeType<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kAttributeType<std::int32_t> = CUDNN_TYPE_INT32;
template <>
inline constexpr auto kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);  // throws CudaError, as all here
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set_raw(name, kAttributeType<T>, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  template <typename T>
  Descriptor& set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set_raw(name, kAttributeType<T>, static_cast<std::int64_t>(values.size()),
                   values.data());
  }
  Descriptor& set_all(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values);
  Descriptor& finalize();

  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type) const;

  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t count, const void* values);
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace stepcast::cuda
