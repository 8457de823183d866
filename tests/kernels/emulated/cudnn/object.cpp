// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/cudnn/object.h"

#include <algorithm>

namespace stepcast::emulated {
namespace {

struct Attribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  bool needed = true;
};

const std::vector<Attribute>& attributes_of(cudnnBackendDescriptorType_t type) {
  constexpr auto kObject = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  static const std::map<cudnnBackendDescriptorType_t, std::vector<Attribute>> known = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kObject},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kObject},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kObject, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kObject, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kObject}}},
      {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kObject},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kObject},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kObject},
        {CUDNN_ATTR_OPERATION_MATMUL_DESC, kObject}}},
      {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, kObject},
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kObject},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kObject}}},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kObject},
        {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kObject}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_OPS, kObject},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, false}}},
      {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, {{CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kObject},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, kObject, false}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kObject},
        {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, kObject, false},
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, false}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}}},
  };
  const auto found = known.find(type);
  if (found == known.end()) {
    throw Refused(CUDNN_STATUS_BAD_PARAM, "no attributes of a descriptor of this kind are set");
  }
  return found->second;
}

void expect(bool good, const char* why) {
  if (!good) throw Refused(CUDNN_STATUS_BAD_PARAM, why);
}

void expect_tensor(const Object& tensor) {
  const auto& dims = tensor.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto& strides = tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES);
  expect(dims.size() == 4 && strides.size() == 4, "tensors of attention have four dimensions");
  for (std::size_t i = 0; i < 4; ++i) {
    expect(dims[i] > 0 && strides[i] > 0, "dimensions and strides are positive");
  }
  const bool by_value = tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  expect(!by_value || tensor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) == 0,
         "what is given by value is not virtual");
  expect(!by_value || std::count(dims.begin(), dims.end(), 1) == 4, "one number by value");
}

// The whole of a plan is for one: that of a handle, or one that is described.
void expect_one_device(const Object& plan) {
  const Object& heuristics = *plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object& graph = *heuristics.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const bool by_handle = plan.values.contains(CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  expect(by_handle != plan.values.contains(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP),
         "either a handle or a device's properties");
  expect(by_handle == graph.values.contains(CUDNN_ATTR_OPERATIONGRAPH_HANDLE),
         "the graph has a handle where the plan has one");
}

}  // namespace

void expect_complete(const Object& object) {
  const std::vector<Attribute>& known = attributes_of(object.type);
  for (const Attribute& attribute : known) {
    const auto found = object.values.find(attribute.name);
    const std::string name = std::to_string(attribute.name);
    if (found == object.values.end()) {
      if (!attribute.needed) continue;
      throw Refused(CUDNN_STATUS_BAD_PARAM, "attribute " + name + " is not set");
    }
    expect(found->second.type == attribute.type, "an attribute of another type");
    for (const ObjectPtr& part : found->second.objects) {
      expect(part->final, "a part is not finalized");
    }
  }
  for (const auto& set : object.values) {
    expect(std::any_of(known.begin(), known.end(),
                       [&](const Attribute& attribute) { return attribute.name == set.first; }),
           "an attribute that this descriptor does not have");
  }
  if (object.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) expect_tensor(object);
  if (object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) expect_one_device(object);
}

}  // namespace stepcast::emulated
