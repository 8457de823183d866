// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph API, found in its library when the first of its functions is needed. Only for the
// sources of this folder, as are all headers here but attention.h.
#pragma once

#include <cudnn_graph.h>

namespace stepcast::cuda {

struct CudnnLibrary {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

const CudnnLibrary& cudnn();  // throws CudaError with the reason of why_no_cudnn()

// Throws CudaError with the call, the status and the library's own words.
void check_cudnn(cudnnStatus_t status, const char* call);

}  // namespace stepcast::cuda
