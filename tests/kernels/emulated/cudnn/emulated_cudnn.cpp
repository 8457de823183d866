// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/cudnn/emulated_cudnn.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/emulated/cudnn/graph_run.h"
#include "kernels/emulated/runtime.h"

using stepcast::emulated::Bindings;
using stepcast::emulated::Object;
using stepcast::emulated::ObjectPtr;
using stepcast::emulated::Refused;
using stepcast::emulated::Value;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

std::atomic<double> seconds = 1e-3;
std::atomic<std::size_t> version = 91900;
std::atomic<int> executions = 0;
std::string refusal;
bool fails = false, fails_by_properties = false;
thread_local std::string last_error;

std::int64_t workspace = 256;

ObjectPtr& object_of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<ObjectPtr*>(descriptor);
}

template <typename Body>
cudnnStatus_t guarded(const Body& body) {
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refused& error) {
    last_error = error.what();
    return error.status();
  }
}

void expect(bool good, const char* why) {
  if (!good) throw Refused(CUDNN_STATUS_BAD_PARAM, why);
}

template <typename T>
void copy_numbers(const void* from, std::int64_t count, std::vector<std::int64_t>& to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to.push_back(static_cast<std::int64_t>(static_cast<const T*>(from)[i]));
  }
}

Value value_of(cudnnBackendAttributeType_t type, std::int64_t count, const void* from) {
  Value out{type, {}, {}};
  switch (type) {
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      for (std::int64_t i = 0; i < count; ++i) {
        out.objects.push_back(object_of(static_cast<cudnnBackendDescriptor_t const*>(from)[i]));
      }
      break;
    case CUDNN_TYPE_INT64:
      copy_numbers<std::int64_t>(from, count, out.numbers);
      break;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      for (std::int64_t i = 0; i < count; ++i) {
        out.numbers.push_back(reinterpret_cast<std::int64_t>(static_cast<void* const*>(from)[i]));
      }
      break;
    case CUDNN_TYPE_BOOLEAN:
      copy_numbers<bool>(from, count, out.numbers);
      break;
    case CUDNN_TYPE_CHAR:
      copy_numbers<char>(from, count, out.numbers);
      break;
    default:  // enumerations and 32-bit integers
      copy_numbers<std::int32_t>(from, count, out.numbers);
  }
  return out;
}

const Object& graph_of(const Object& plan) {
  return *plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
              ->object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
}

// A single proposal, of mode A: a configuration that knows its graph.
std::int64_t propose(const Object& heuristics, std::int64_t requested, void* values) {
  if (heuristics.number(CUDNN_ATTR_ENGINEHEUR_MODE) != CUDNN_HEUR_MODE_A) return 0;
  if (requested == 0) return 1;
  Object& configuration = *object_of(static_cast<cudnnBackendDescriptor_t*>(values)[0]);
  expect(configuration.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "room for a configuration");
  configuration.values[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
      heuristics.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  configuration.final = true;
  return 1;
}

}  // namespace

namespace stepcast::emulated {

void set_cudnn_seconds(double of_each) { seconds = of_each; }
void set_cudnn_version(std::size_t number) { version = number; }
void refuse_cudnn_plans(const std::string& why) { refusal = why; }
void fail_cudnn_executions(bool fail) { fails = fail; }
void fail_cudnn_plans_of_properties(bool fail) { fails_by_properties = fail; }
void set_cudnn_workspace(std::int64_t bytes) { workspace = bytes; }
int cudnn_executions() { return executions; }

}  // namespace stepcast::emulated

std::size_t cudnnGetVersion() { return version; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_EXECUTION_FAILED) return "CUDNN_STATUS_EXECUTION_FAILED";
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                              : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char* message, std::size_t size) {
  const std::size_t length = std::min(last_error.size(), size - 1);
  std::memcpy(message, last_error.data(), length);
  message[length] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new ObjectPtr(std::make_shared<Object>(Object{type, false, {}}));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<ObjectPtr*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  return guarded([&] {
    Object& object = *object_of(descriptor);
    expect(!object.final, "it is finalized");
    expect(count > 0 && values != nullptr, "something to set");
    object.values[name] = value_of(type, count, values);
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t requested,
                                       std::int64_t* count, void* values) {
  return guarded([&] {
    const Object& object = *object_of(descriptor);
    expect(object.final, "it is not finalized");
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
      *count = propose(object, requested, values);
    } else {
      expect(name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, "an attribute that can be asked");
      *count = 1;
      *static_cast<std::int64_t*>(values) = workspace;
    }
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded([&] {
    Object& object = *object_of(descriptor);
    expect(!object.final, "it is finalized already");
    stepcast::emulated::expect_complete(object);
    if (object.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
      stepcast::emulated::expect_connected(object);
    }
    if (object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !refusal.empty()) {
      throw Refused(CUDNN_STATUS_NOT_SUPPORTED, refusal);
    }
    object.final = true;
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return guarded([&] {
    const ObjectPtr kept = object_of(plan);
    expect(kept->final && object_of(pack)->final, "a plan and a pack that are finalized");
    expect(object_of(pack)->number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) != 0, "workspace");
    const bool by_properties = kept->values.contains(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    if (fails || (fails_by_properties && by_properties))
      throw Refused(CUDNN_STATUS_EXECUTION_FAILED, "a kernel that cannot be launched");
    ++executions;
    const Bindings bindings = stepcast::emulated::bindings_of(graph_of(*kept), *object_of(pack));
    stepcast::emulated::enqueue(handle->stream, [kept, bindings](double now_s) {
      stepcast::emulated::run_graph(graph_of(*kept), bindings);
      return now_s + seconds;
    });
  });
}
