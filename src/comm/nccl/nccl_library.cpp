// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/communicator.h"

namespace stepcast {
namespace {

constexpr const char* kFile = "libnccl.so.2";

struct Loaded {
  NcclLibrary library{};
  std::optional<std::string> why_not;
};

class Loader {
 public:
  Loaded load() {
    file_ = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    const std::string why = file_ == nullptr ? ::dlerror() : "";
#ifdef STEPCAST_NCCL_FILE  // where it was when this was built
    if (file_ == nullptr) file_ = ::dlopen(STEPCAST_NCCL_FILE, RTLD_NOW | RTLD_LOCAL);
#endif
    if (file_ == nullptr) return {{}, fmt::format("no NCCL: {}", why)};
    NcclLibrary& to = out_.library;
    find(to.get_version, "ncclGetVersion");
    find(to.get_unique_id, "ncclGetUniqueId");
    find(to.get_error_string, "ncclGetErrorString");
    find(to.get_last_error, "ncclGetLastError");
    find(to.comm_init_rank_config, "ncclCommInitRankConfig");
    find(to.comm_split, "ncclCommSplit");
    find(to.comm_finalize, "ncclCommFinalize");
    find(to.comm_destroy, "ncclCommDestroy");
    find(to.comm_abort, "ncclCommAbort");
    find(to.comm_get_async_error, "ncclCommGetAsyncError");
    find(to.comm_count, "ncclCommCount");
    find(to.comm_user_rank, "ncclCommUserRank");
    find(to.comm_register, "ncclCommRegister");
    find(to.comm_deregister, "ncclCommDeregister");
    find(to.mem_alloc, "ncclMemAlloc");
    find(to.mem_free, "ncclMemFree");
    find(to.all_reduce, "ncclAllReduce");
    find(to.all_gather, "ncclAllGather");
    find(to.reduce_scatter, "ncclReduceScatter");
    find(to.broadcast, "ncclBroadcast");
    find(to.reduce, "ncclReduce");
    find(to.send, "ncclSend");
    find(to.receive, "ncclRecv");
    find(to.group_start, "ncclGroupStart");
    find(to.group_end, "ncclGroupEnd");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    look_for(to.window_register, "ncclCommWindowRegister");
    look_for(to.window_deregister, "ncclCommWindowDeregister");
#endif
    return std::move(out_);
  }

 private:
  template <typename Function>
  void look_for(Function& to, const char* name) {
    to = reinterpret_cast<Function>(::dlsym(file_, name));
  }
  template <typename Function>
  void find(Function& to, const char* name) {
    look_for(to, name);
    if (to == nullptr && !out_.why_not) {
      out_.why_not = fmt::format("no NCCL: {} has no {}: 2.19 or later is needed", kFile, name);
    }
  }

  void* file_ = nullptr;  // for the life of the process
  Loaded out_;
};

const Loaded& loaded() {
  static const Loaded once = Loader().load();
  return once;
}

}  // namespace

std::optional<std::string> why_no_nccl_library() { return loaded().why_not; }

const NcclLibrary& nccl() {
  if (loaded().why_not) throw CommunicationError(*loaded().why_not);
  return loaded().library;
}

}  // namespace stepcast
