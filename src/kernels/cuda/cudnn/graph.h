// SPDX-License-Identifier: Apache-2.0
// A graph of cuDNN operations on tensors of four dimensions: NVIDIA, "cuDNN backend", graph API.
// A tensor is real (an array of the caller's), by value (one number on the host) or virtual (never
// in memory). Arithmetic is in fp32.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/cudnn/descriptor.h"

namespace stepcast::cuda {

using Four = std::array<std::int64_t, 4>;

struct Layout {
  Four dims, strides;  // in elements
};
Layout packed(const Four& dims);
Layout transposed(const Layout& layout);  // of the last two dimensions

class Graph {
 public:
  using Tensor = std::size_t;  // its unique id, too

  Tensor real(const Layout& layout, cudnnDataType_t type, std::int64_t alignment = 16);
  Tensor value();                                                           // fp32, given by value
  Tensor inner(const Four& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT);  // virtual

  // Multiplies over the last two dimensions. Heads of b divide those of a.
  void matmul(Tensor a, Tensor b, Tensor out);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor out);
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor out,
                 cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT);
  void select(Tensor where_true, Tensor where_false, Tensor mask, Tensor out);
  void indices(Tensor like, std::int64_t axis, Tensor out);  // positions along the axis
  // Over the dimensions that are smaller in `out`; by groups where they divide.
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor out);
  // `out` holds the elements of x under its own layout; it is used to swap the last two dimensions.
  void reshape(Tensor x, Tensor out);
  // Virtual, of x's dimensions, in fp32.
  Tensor like(Tensor x, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  Tensor transpose(Tensor x, cudnnDataType_t type);  // virtual

  // An operation graph; without a handle one for a device that is described by its properties.
  Descriptor finished(cudnnHandle_t handle = nullptr) const;

 private:
  struct Kept {
    Layout layout;
    cudnnDataType_t type;
    Descriptor descriptor;
  };
  Tensor add(const Layout& layout, cudnnDataType_t type, std::int64_t alignment, bool is_virtual,
             bool by_value);
  const Descriptor& at(Tensor tensor) const { return tensors_[tensor - 1].descriptor; }
  Descriptor& operation(cudnnBackendDescriptorType_t type);
  static Descriptor pointwise_of(cudnnPointwiseMode_t mode, cudnnDataType_t arithmetic);

  std::vector<Kept> tensors_;
  std::vector<Descriptor> operations_;
};

}  // namespace stepcast::cuda
