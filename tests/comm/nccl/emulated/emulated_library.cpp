// SPDX-License-Identifier: Apache-2.0
// comm/nccl/nccl_library.h for the stand-in: its functions are in this program.
#include "comm/nccl/nccl_library.h"

namespace stepcast {

std::optional<std::string> why_no_nccl_library() { return std::nullopt; }

const NcclLibrary& nccl() {
  static const NcclLibrary library{ncclGetVersion,
                                   ncclGetUniqueId,
                                   ncclGetErrorString,
                                   ncclGetLastError,
                                   ncclCommInitRankConfig,
                                   ncclCommSplit,
                                   ncclCommFinalize,
                                   ncclCommDestroy,
                                   ncclCommAbort,
                                   ncclCommGetAsyncError,
                                   ncclCommCount,
                                   ncclCommUserRank,
                                   ncclCommRegister,
                                   ncclCommDeregister,
                                   ncclMemAlloc,
                                   ncclMemFree,
                                   ncclAllReduce,
                                   ncclAllGather,
                                   ncclReduceScatter,
                                   ncclBroadcast,
                                   ncclReduce,
                                   ncclSend,
                                   ncclRecv,
                                   ncclGroupStart,
                                   ncclGroupEnd,
                                   ncclCommWindowRegister,
                                   ncclCommWindowDeregister};
  return library;
}

}  // namespace stepcast
