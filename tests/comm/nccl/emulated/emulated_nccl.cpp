// SPDX-License-Identifier: Apache-2.0
#include "emulated_nccl.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "kernels/emulated/runtime.h"
#include "kernels/half_values.h"

namespace {

using stepcast::cuda::Bf16;
using stepcast::cuda::Fp16;
using stepcast::cuda::rounded;
using stepcast::cuda::to_float;

std::size_t size_of(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : type == ncclFloat32 ? 4 : 2;
}

enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kSend, kReceive };
const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                    "Reduce",    "Send",      "Recv"};
  return kNames[static_cast<int>(kind)];
}

struct Call {
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int other;                // root or peer
  std::int64_t number = 0;  // among the communicator's collectives

  bool is_message() const { return kind == Kind::kSend || kind == Kind::kReceive; }
  bool matches(const Call& c) const {
    return kind == c.kind && count == c.count && type == c.type && op == c.op && other == c.other;
  }
  std::string described() const {
    return std::string(name_of(kind)) + " of " + std::to_string(count) + " elements";
  }
};

std::mutex everything;  // one lock for all communicators: tests are small
std::condition_variable changed;
stepcast::emulated::NcclCost cost_of;
stepcast::emulated::NcclUse use;

// A call of one member that has come to its turn on its stream.
struct Arrival {
  Call call;
  double now_s;
  std::optional<double> end_s = {};
};

struct Member;

struct Split {
  struct Part {
    int color, key, rank;
    std::shared_ptr<Member> member;
  };
  std::vector<Part> parts;
};

struct World {
  explicit World(int size_) : size(size_), members(static_cast<std::size_t>(size_)) {}
  const int size;
  std::vector<Member*> members;  // null: not yet here, or gone again
  int joined = 0;
  std::map<std::int64_t, std::map<int, Arrival*>> meetings;             // by number, rank
  std::map<std::pair<int, int>, std::deque<Arrival*>> sends, receives;  // by sender and receiver
  std::map<std::int64_t, Split> splits;
};

// A communicator is this on one rank, as long as work or handles need it.
struct Member {
  std::shared_ptr<World> world;  // null: of a split that is not complete
  int rank = 0;
  bool aborted = false;
  bool splitting = false;
  std::function<bool()> fill_in = {};  // a handle, once it says true
  ncclResult_t error = ncclSuccess;
  std::string why;
  std::int64_t collectives = 0, splits = 0;

  bool ready() const { return world && world->joined == world->size && !splitting; }
};

void fail_all(World& world, ncclResult_t error, const std::string& why) {
  for (Member* member : world.members) {
    if (member == nullptr || member->error != ncclSuccess) continue;
    member->error = error;
    member->why = why;
  }
  changed.notify_all();
}

template <typename T>
void reduce(const std::vector<const void*>& from, std::size_t first, std::size_t count,
            ncclRedOp_t op, void* to) {
  for (std::size_t i = 0; i < count; ++i) {
    float all = to_float(static_cast<const T*>(from.front())[first + i]);
    for (std::size_t r = 1; r < from.size(); ++r) {
      const float one = to_float(static_cast<const T*>(from[r])[first + i]);
      all = op == ncclSum ? all + one : std::fmax(all, one);
    }
    static_cast<T*>(to)[i] = rounded<T>(all);
  }
}

std::vector<unsigned char> reduced(const std::map<int, Arrival*>& meeting, std::size_t first,
                                   std::size_t count) {
  const Call& call = meeting.begin()->second->call;
  std::vector<const void*> from;
  for (const auto& [rank, arrival] : meeting) from.push_back(arrival->call.send);
  std::vector<unsigned char> out(count * size_of(call.type));
  switch (call.type) {
    case ncclFloat32:
      reduce<float>(from, first, count, call.op, out.data());
      break;
    case ncclFloat16:
      reduce<Fp16>(from, first, count, call.op, out.data());
      break;
    default:
      reduce<Bf16>(from, first, count, call.op, out.data());
  }
  return out;
}

void put(const std::vector<unsigned char>& data, void* to) {
  if (!data.empty()) std::memmove(to, data.data(), data.size());
}
std::vector<unsigned char> bytes_at(const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(from);
  return {begin, begin + bytes};
}

// Results are made before any is written: operations may be in place.
void perform(const std::map<int, Arrival*>& meeting) {
  const Call& call = meeting.begin()->second->call;
  const std::size_t bytes = call.count * size_of(call.type);
  if (bytes == 0) return;
  if (call.kind == Kind::kAllGather) {
    std::vector<unsigned char> all;
    for (const auto& [rank, a] : meeting) {
      const auto part = bytes_at(a->call.send, bytes);
      all.insert(all.end(), part.begin(), part.end());
    }
    for (const auto& [rank, a] : meeting) put(all, a->call.receive);
  } else if (call.kind == Kind::kBroadcast) {
    const auto data = bytes_at(meeting.at(call.other)->call.send, bytes);
    for (const auto& [rank, a] : meeting) put(data, a->call.receive);
  } else {
    const bool scatters = call.kind == Kind::kReduceScatter;
    const auto all = reduced(meeting, 0, call.count * (scatters ? meeting.size() : 1));
    for (const auto& [rank, a] : meeting) {
      if (call.kind == Kind::kReduce && rank != call.other) continue;
      const std::size_t begin = scatters ? static_cast<std::size_t>(rank) * bytes : 0;
      put({all.begin() + static_cast<std::ptrdiff_t>(begin),
           all.begin() + static_cast<std::ptrdiff_t>(begin + bytes)},
          a->call.receive);
    }
  }
}

double seconds_of(const Call& call, int ranks) {
  if (!cost_of) return 0;
  auto bytes = static_cast<double>(call.count * size_of(call.type));
  if (call.kind == Kind::kAllGather || call.kind == Kind::kReduceScatter) bytes *= ranks;
  return cost_of(name_of(call.kind), bytes, ranks);
}

void come_to_collective(Member& member, Arrival& arrival) {
  World& world = *member.world;
  auto& meeting = world.meetings[arrival.call.number];
  meeting[member.rank] = &arrival;
  const auto other = std::find_if(meeting.begin(), meeting.end(), [&](const auto& entry) {
    return !arrival.call.matches(entry.second->call);
  });
  if (other != meeting.end()) {
    fail_all(world, ncclInvalidUsage,
             "rank " + std::to_string(member.rank) + " comes with " + arrival.call.described() +
                 ", rank " + std::to_string(other->first) + " with " +
                 other->second->call.described());
    return;
  }
  if (static_cast<int>(meeting.size()) < world.size) return;
  perform(meeting);
  double end_s = 0;
  for (const auto& [rank, a] : meeting) end_s = std::max(end_s, a->now_s);
  end_s += seconds_of(arrival.call, world.size);
  for (const auto& [rank, a] : meeting) a->end_s = end_s;
  world.meetings.erase(arrival.call.number);
  changed.notify_all();
}

void come_to_message(Member& member, Arrival& arrival) {
  World& world = *member.world;
  const bool sends = arrival.call.kind == Kind::kSend;
  const std::pair key = sends ? std::pair(member.rank, arrival.call.other)
                              : std::pair(arrival.call.other, member.rank);
  auto& waiting = sends ? world.receives[key] : world.sends[key];
  if (waiting.empty()) {
    (sends ? world.sends : world.receives)[key].push_back(&arrival);
    return;
  }
  Arrival& partner = *waiting.front();
  waiting.pop_front();
  const Call& from = sends ? arrival.call : partner.call;
  const Call& to = sends ? partner.call : arrival.call;
  if (from.count != to.count || from.type != to.type) {
    fail_all(world, ncclInvalidUsage,
             "rank " + std::to_string(key.first) + " sends " + std::to_string(from.count) +
                 " elements, rank " + std::to_string(key.second) + " receives " +
                 std::to_string(to.count));
    return;
  }
  const std::size_t bytes = from.count * size_of(from.type);
  if (bytes > 0) std::memmove(to.receive, from.send, bytes);
  arrival.end_s = partner.end_s =
      std::max(arrival.now_s, partner.now_s) + seconds_of(from, world.size);
  changed.notify_all();
}

// Nothing of this member may be met any more.
void withdraw(World& world, const std::vector<Arrival>& arrivals) {
  const auto is_ours = [&](const Arrival* a) {
    return a >= arrivals.data() && a < arrivals.data() + arrivals.size();
  };
  for (auto& [number, meeting] : world.meetings) {
    std::erase_if(meeting, [&](const auto& entry) { return is_ours(entry.second); });
  }
  std::erase_if(world.meetings, [](const auto& entry) { return entry.second.empty(); });
  for (auto* queues : {&world.sends, &world.receives}) {
    for (auto& [key, queue] : *queues) std::erase_if(queue, is_ours);
  }
}

// All calls of a group come together, and it has ended when all of them have.
double run(const std::shared_ptr<Member>& member, const std::vector<Call>& calls, double now_s) {
  std::unique_lock lock(everything);
  std::vector<Arrival> arrivals;
  for (const Call& call : calls) arrivals.push_back({call, now_s});
  for (Arrival& arrival : arrivals) {
    if (member->aborted || member->error != ncclSuccess) break;
    arrival.call.is_message() ? come_to_message(*member, arrival)
                              : come_to_collective(*member, arrival);
  }
  const auto all_ended = [&] {
    return std::all_of(arrivals.begin(), arrivals.end(),
                       [](const Arrival& a) { return a.end_s.has_value(); });
  };
  changed.wait(lock, [&] { return member->aborted || all_ended(); });
  for (const Arrival& arrival : arrivals) now_s = std::max(now_s, arrival.end_s.value_or(now_s));
  withdraw(*member->world, arrivals);
  return now_s;
}

struct QueuedCalls {
  std::shared_ptr<Member> member;
  cudaStream_t stream;
  std::vector<Call> calls;
};
thread_local int group_depth = 0;
thread_local std::vector<QueuedCalls> group;
thread_local ncclResult_t group_error = ncclSuccess;

void launch(QueuedCalls&& queued) {
  stepcast::emulated::enqueue(queued.stream,
                              [member = std::move(queued.member), calls = std::move(queued.calls)](
                                  double now_s) { return run(member, calls, now_s); });
}

std::map<std::string, std::shared_ptr<World>> worlds;  // that are not complete, by id

void join(World& world, const std::shared_ptr<Member>& member) {
  world.members[static_cast<std::size_t>(member->rank)] = member.get();
  ++world.joined;
  changed.notify_all();
}

void complete(Split& split, World& parent) {
  std::map<int, std::vector<Split::Part>> groups;
  for (const Split::Part& part : split.parts) {
    if (part.color >= 0) groups[part.color].push_back(part);
  }
  for (auto& [color, members] : groups) {
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
    });
    const auto world = std::make_shared<World>(static_cast<int>(members.size()));
    for (std::size_t r = 0; r < members.size(); ++r) {
      members[r].member->world = world;
      members[r].member->rank = static_cast<int>(r);
      join(*world, members[r].member);
    }
  }
  for (Member* member : parent.members) {
    if (member != nullptr) member->splitting = false;
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Member> member;
};
struct ncclWindow {
  void* data;
};

namespace {

ncclComm_t new_comm(std::shared_ptr<Member> member) {
  ++use.communicators;
  return new ncclComm{std::move(member)};
}

ncclResult_t issue(ncclComm_t comm, cudaStream_t stream, Call call) {
  const std::lock_guard lock(everything);
  Member& member = *comm->member;
  const bool wrong = call.kind != Kind::kAllReduce && call.kind != Kind::kAllGather &&
                     call.kind != Kind::kReduceScatter &&
                     (call.other < 0 || call.other >= member.world->size);
  const ncclResult_t result = member.aborted || !member.ready() ? ncclInvalidUsage
                              : wrong                           ? ncclInvalidArgument
                                                                : member.error;
  if (result != ncclSuccess) {
    if (group_depth > 0) group_error = result;
    return result;
  }
  if (!call.is_message()) call.number = member.collectives++;
  if (group_depth == 0) {
    launch({comm->member, stream, {call}});
    return ncclInProgress;  // as of a communicator that does not block; it is over at once
  }
  const auto found = std::find_if(group.begin(), group.end(), [&](const QueuedCalls& queued) {
    return queued.member == comm->member && queued.stream == stream;
  });
  if (found == group.end()) {
    group.push_back({comm->member, stream, {call}});
  } else {
    found->calls.push_back(call);
  }
  return ncclSuccess;
}

// Ends its work without its peers, who are told of a death.
void leave(ncclComm_t comm, bool dies) {
  const std::lock_guard lock(everything);
  Member& member = *comm->member;
  member.aborted = true;
  if (member.world) {
    auto& self = member.world->members[static_cast<std::size_t>(member.rank)];
    if (self == &member) self = nullptr;
    if (dies) {
      fail_all(*member.world, ncclRemoteError, "rank " + std::to_string(member.rank) + " has died");
    }
  }
  --use.communicators;
  delete comm;
  changed.notify_all();
}

}  // namespace

namespace stepcast::emulated {

void set_nccl_cost(NcclCost cost) {
  const std::lock_guard lock(everything);
  cost_of = std::move(cost);
}
NcclUse nccl_use() {
  const std::lock_guard lock(everything);
  return use;
}

}  // namespace stepcast::emulated

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<unsigned> next{1};
  std::memset(id->internal, 0x7f, sizeof id->internal);  // as floats: NaN
  const unsigned number = next++;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return kTexts[result];
}
const char* ncclGetLastError(ncclComm_t comm) {
  thread_local std::string text;
  const std::lock_guard lock(everything);
  text = comm == nullptr ? "" : comm->member->why;
  return text.c_str();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ranks < 1 || rank < 0 || rank >= ranks || config->blocking != 0) return ncclInvalidArgument;
  const std::lock_guard lock(everything);
  const std::string key(id.internal, sizeof id.internal);
  auto& world = worlds[key];
  if (!world) world = std::make_shared<World>(ranks);
  if (world->size != ranks || world->members[static_cast<std::size_t>(rank)] != nullptr) {
    return ncclInvalidUsage;
  }
  const auto member = std::make_shared<Member>();
  member->world = world;
  member->rank = rank;
  join(*world, member);
  *comm = new_comm(member);
  if (world->joined == ranks) worlds.erase(key);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part,
                           ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;
  const std::lock_guard lock(everything);
  Member& member = *comm->member;
  if (!member.ready()) return ncclInvalidUsage;
  const auto made = color < 0 ? nullptr : std::make_shared<Member>();
  *part = nullptr;
  member.splitting = true;
  // The handle comes one answer later than the end of the call.
  member.fill_in = [=, answers = 0]() mutable {
    if (++answers == 2 && made) *part = new_comm(made);
    return answers == 2;
  };
  const std::int64_t number = member.splits++;
  Split& split = member.world->splits[number];
  split.parts.push_back({color, key, member.rank, made});
  if (static_cast<int>(split.parts.size()) == member.world->size) {
    complete(split, *member.world);
    member.world->splits.erase(number);
  }
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  leave(comm, false);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  leave(comm, true);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(everything);
  Member& member = *comm->member;
  *state = member.error != ncclSuccess ? member.error
           : member.ready()            ? ncclSuccess
                                       : ncclInProgress;
  if (*state == ncclSuccess && member.fill_in && member.fill_in()) member.fill_in = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const std::lock_guard lock(everything);
  *count = comm->member->world->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  const std::lock_guard lock(everything);
  *rank = comm->member->rank;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** data, std::size_t bytes) {
  const std::lock_guard lock(everything);
  ++use.allocations;
  return cudaMalloc(data, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* data) {
  const std::lock_guard lock(everything);
  --use.allocations;
  cudaFree(data);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t, void* data, std::size_t, void** handle) {
  const std::lock_guard lock(everything);
  ++use.registrations;
  *handle = data;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) {
  const std::lock_guard lock(everything);
  --use.registrations;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t, void* data, std::size_t, ncclWindow_t* window,
                                    int flags) {
  if (flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
  const std::lock_guard lock(everything);
  ++use.registrations;
  *window = new ncclWindow{data};
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t window) {
  const std::lock_guard lock(everything);
  --use.registrations;
  delete window;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kAllReduce, send, receive, count, type, op, 0});
}
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kAllGather, send, receive, count, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return issue(comm, stream, {Kind::kReduceScatter, send, receive, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kBroadcast, send, receive, count, type, ncclSum, root});
}
ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kReduce, send, receive, count, type, op, root});
}
ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kSend, send, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Kind::kReceive, nullptr, receive, count, type, ncclSum, peer});
}
ncclResult_t ncclGroupStart() {
  if (group_depth++ == 0) {
    group.clear();
    group_error = ncclSuccess;
  }
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  auto calls = std::move(group);
  group.clear();
  if (group_error != ncclSuccess) return group_error;
  for (QueuedCalls& queued : calls) launch(std::move(queued));
  return calls.empty() ? ncclSuccess : ncclInProgress;
}
