// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for planning without a driver. cuDNN compiles kernels for a device that is
// described to it, and then loads them. This library only pretends that they were loaded;
// everything else fails as in the toolkit's own stub of the driver.
namespace {
constexpr int kStub = 34;  // CUDA_ERROR_STUB_LIBRARY
long anything[1024];
}  // namespace

#define STEPCAST_FAILS(name) \
  extern "C" int name() { return kStub; }
#define STEPCAST_GIVES_SOMETHING(name)   \
  extern "C" int name(void** out, ...) { \
    *out = anything;                     \
    return 0;                            \
  }
#define STEPCAST_SUCCEEDS(name) \
  extern "C" int name() { return 0; }

extern "C" int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
extern "C" int cuKernelGetAttribute(int* value, ...) {
  *value = 0;
  return 0;
}
STEPCAST_GIVES_SOMETHING(cuLibraryLoadData)
STEPCAST_GIVES_SOMETHING(cuLibraryGetKernel)
STEPCAST_SUCCEEDS(cuKernelSetAttribute)
STEPCAST_SUCCEEDS(cuLibraryLoadFromFile)
STEPCAST_SUCCEEDS(cuLibraryUnload)

STEPCAST_FAILS(cuCtxGetCurrent)
STEPCAST_FAILS(cuCtxGetDevice)
STEPCAST_FAILS(cuCtxGetLimit)
STEPCAST_FAILS(cuCtxPopCurrent)
STEPCAST_FAILS(cuCtxPushCurrent)
STEPCAST_FAILS(cuDeviceGet)
STEPCAST_FAILS(cuDeviceGetAttribute)
STEPCAST_FAILS(cuDeviceGetCount)
STEPCAST_FAILS(cuDevicePrimaryCtxRelease)
STEPCAST_FAILS(cuDevicePrimaryCtxReset)
STEPCAST_FAILS(cuDevicePrimaryCtxRetain)
STEPCAST_FAILS(cuFuncGetAttribute)
STEPCAST_FAILS(cuFuncSetAttribute)
STEPCAST_FAILS(cuGetErrorName)
STEPCAST_FAILS(cuGetErrorString)
STEPCAST_FAILS(cuInit)
STEPCAST_FAILS(cuLaunchCooperativeKernel)
STEPCAST_FAILS(cuLaunchKernel)
STEPCAST_FAILS(cuLaunchKernelEx)
STEPCAST_FAILS(cuLinkAddData)
STEPCAST_FAILS(cuLinkAddData_v2)
STEPCAST_FAILS(cuLinkAddFile_v2)
STEPCAST_FAILS(cuLinkComplete)
STEPCAST_FAILS(cuLinkCreate)
STEPCAST_FAILS(cuLinkCreate_v2)
STEPCAST_FAILS(cuLinkDestroy)
STEPCAST_FAILS(cuMemcpyDtoH_v2)
STEPCAST_FAILS(cuModuleGetFunction)
STEPCAST_FAILS(cuModuleGetGlobal_v2)
STEPCAST_FAILS(cuModuleLoadData)
STEPCAST_FAILS(cuModuleLoadDataEx)
STEPCAST_FAILS(cuModuleLoadFatBinary)
STEPCAST_FAILS(cuModuleUnload)
STEPCAST_FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
STEPCAST_FAILS(cuOccupancyMaxPotentialClusterSize)
STEPCAST_FAILS(cuStreamGetCtx)
STEPCAST_FAILS(cuStreamSynchronize)
STEPCAST_FAILS(cuTensorMapEncodeTiled)
