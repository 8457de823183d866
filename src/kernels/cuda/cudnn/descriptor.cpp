// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/descriptor.h"

#include <algorithm>
#include <utility>

namespace stepcast::cuda {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnn().create_descriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnn().destroy_descriptor(handle_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::int64_t count, const void* values) {
  check_cudnn(cudnn().set_attribute(handle_, name, type, count, values),
              "cudnnBackendSetAttribute");
  return *this;
}

Descriptor& Descriptor::set_all(cudnnBackendAttributeName_t name,
                                const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) handles.push_back(value.handle_);
  return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()),
                 handles.data());
}

Descriptor& Descriptor::finalize() {
  check_cudnn(cudnn().finalize(handle_), "cudnnBackendFinalize");
  return *this;
}

std::int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t count = 0, value = 0;
  check_cudnn(cudnn().get_attribute(handle_, name, CUDNN_TYPE_INT64, 1, &count, &value),
              "cudnnBackendGetAttribute");
  return value;
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type) const {
  std::int64_t count = 0;
  check_cudnn(
      cudnn().get_attribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "cudnnBackendGetAttribute");
  std::vector<Descriptor> out;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    out.emplace_back(type);
    handles.push_back(out.back().handle_);
  }
  std::int64_t given = 0;
  check_cudnn(cudnn().get_attribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &given,
                                    handles.data()),
              "cudnnBackendGetAttribute");
  out.erase(out.begin() + std::min(given, count), out.end());
  return out;
}

}  // namespace stepcast::cuda
