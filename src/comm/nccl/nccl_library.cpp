// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_library.h"

#include "comm/communicator.h"
#include "core/shared_library.h"

namespace stepcast {
namespace {

struct Loaded {
  NcclLibrary library{};
  std::optional<std::string> why_not;
};

Loaded load() {
#ifdef STEPCAST_NCCL_FILE  // where it was when this was built
  SharedLibrary file("NCCL", "libnccl.so.2", "2.19", STEPCAST_NCCL_FILE);
#else
  SharedLibrary file("NCCL", "libnccl.so.2", "2.19");
#endif
  NcclLibrary to{};
  file.need(to.get_version, "ncclGetVersion");
  file.need(to.get_unique_id, "ncclGetUniqueId");
  file.need(to.get_error_string, "ncclGetErrorString");
  file.need(to.get_last_error, "ncclGetLastError");
  file.need(to.comm_init_rank_config, "ncclCommInitRankConfig");
  file.need(to.comm_split, "ncclCommSplit");
  file.need(to.comm_finalize, "ncclCommFinalize");
  file.need(to.comm_destroy, "ncclCommDestroy");
  file.need(to.comm_abort, "ncclCommAbort");
  file.need(to.comm_get_async_error, "ncclCommGetAsyncError");
  file.need(to.comm_count, "ncclCommCount");
  file.need(to.comm_user_rank, "ncclCommUserRank");
  file.need(to.comm_register, "ncclCommRegister");
  file.need(to.comm_deregister, "ncclCommDeregister");
  file.need(to.mem_alloc, "ncclMemAlloc");
  file.need(to.mem_free, "ncclMemFree");
  file.need(to.all_reduce, "ncclAllReduce");
  file.need(to.all_gather, "ncclAllGather");
  file.need(to.reduce_scatter, "ncclReduceScatter");
  file.need(to.broadcast, "ncclBroadcast");
  file.need(to.reduce, "ncclReduce");
  file.need(to.send, "ncclSend");
  file.need(to.receive, "ncclRecv");
  file.need(to.group_start, "ncclGroupStart");
  file.need(to.group_end, "ncclGroupEnd");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  file.look_for(to.window_register, "ncclCommWindowRegister");
  file.look_for(to.window_deregister, "ncclCommWindowDeregister");
#endif
  return {to, file.why_not()};
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::optional<std::string> why_no_nccl_library() { return loaded().why_not; }

const NcclLibrary& nccl() {
  if (loaded().why_not) throw CommunicationError(*loaded().why_not);
  return loaded().library;
}

}  // namespace stepcast
