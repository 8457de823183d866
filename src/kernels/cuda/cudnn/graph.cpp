// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cudnn/graph.h"

#include <utility>

namespace stepcast::cuda {

Layout packed(const Four& dims) {
  return {dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
}

Layout transposed(const Layout& layout) {
  Layout out = layout;
  std::swap(out.dims[2], out.dims[3]);
  std::swap(out.strides[2], out.strides[3]);
  return out;
}

Graph::Tensor Graph::add(const Layout& layout, cudnnDataType_t type, std::int64_t alignment,
                         bool is_virtual, bool by_value) {
  const auto id = static_cast<std::int64_t>(tensors_.size() + 1);
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .set_all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.dims)
      .set_all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, layout.strides)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
      .finalize();
  tensors_.push_back({layout, type, std::move(tensor)});
  return tensors_.size();
}

Graph::Tensor Graph::real(const Layout& layout, cudnnDataType_t type, std::int64_t alignment) {
  return add(layout, type, alignment, false, false);
}

Graph::Tensor Graph::value() {
  return add(packed({1, 1, 1, 1}), CUDNN_DATA_FLOAT, sizeof(float), false, true);
}

Graph::Tensor Graph::inner(const Four& dims, cudnnDataType_t type) {
  return add(packed(dims), type, 16, true, false);
}

Graph::Tensor Graph::like(Tensor x, cudnnDataType_t type) {
  return inner(tensors_[x - 1].layout.dims, type);
}

Graph::Tensor Graph::transpose(Tensor x, cudnnDataType_t type) {
  const Tensor out = add(transposed(tensors_[x - 1].layout), type, 16, true, false);
  reshape(x, out);
  return out;
}

Descriptor& Graph::operation(cudnnBackendDescriptorType_t type) {
  return operations_.emplace_back(type);
}

void Graph::matmul(Tensor a, Tensor b, Tensor out) {
  Descriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a))
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b))
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(out))
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product)
      .finalize();
}

Descriptor Graph::pointwise_of(cudnnPointwiseMode_t mode, cudnnDataType_t arithmetic) {
  Descriptor out(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  out.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
  return out;
}

void Graph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor out) {
  const Descriptor what = std::move(pointwise_of(mode, CUDNN_DATA_FLOAT).finalize());
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(out))
      .finalize();
}

void Graph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor out,
                      cudnnDataType_t arithmetic) {
  const Descriptor what = std::move(pointwise_of(mode, arithmetic).finalize());
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(b))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(out))
      .finalize();
}

void Graph::select(Tensor where_true, Tensor where_false, Tensor mask, Tensor out) {
  const Descriptor what =
      std::move(pointwise_of(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT).finalize());
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(where_true))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(where_false))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(mask))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(out))
      .finalize();
}

void Graph::indices(Tensor like, std::int64_t axis, Tensor out) {
  Descriptor what = pointwise_of(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT);
  what.set(CUDNN_ATTR_POINTWISE_AXIS, axis).finalize();
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(like))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(out))
      .finalize();
}

void Graph::reduce(cudnnReduceTensorOp_t what, Tensor x, Tensor out) {
  Descriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, what)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize();
  operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x))
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(out))
      .finalize();
}

void Graph::reshape(Tensor x, Tensor out) {
  operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x))
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(out))
      .finalize();
}

Descriptor Graph::finished(cudnnHandle_t handle) const {
  Descriptor out(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle != nullptr) out.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  out.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).finalize();
  return out;
}

}  // namespace stepcast::cuda
