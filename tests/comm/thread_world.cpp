// SPDX-License-Identifier: Apache-2.0
#include "comm/thread_world.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "comm/group_communicator.h"
#include "comm/progress_driver.h"
#include "comm/rank_group.h"
#include "comm/transport.h"
#include "core/assert.h"

namespace stepcast {
namespace {

struct Posting {
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  std::size_t bytes = 0;
  std::size_t bytes_of_other = 0;  // valid once ended
  bool met = false;                // under the mailbox's mutex: the other side has it
  std::atomic<bool> ended = false;
};

void carry_out(Posting& send, Posting& receive) {
  if (send.bytes == receive.bytes && send.bytes > 0) {
    std::memcpy(receive.target, send.source, send.bytes);
  }
  send.bytes_of_other = receive.bytes;
  receive.bytes_of_other = send.bytes;
  // From here on their owners may destroy them.
  send.ended.store(true, std::memory_order_release);
  receive.ended.store(true, std::memory_order_release);
}

// Keeps postings that wait for their other side, by channel: on each, only sends or only receives.
class Mailbox {
 public:
  // The earliest posting of the other kind, or null and this one waits.
  Posting* meet(const Channel& channel, Posting& posting) {
    const std::lock_guard lock(mutex_);
    std::deque<Posting*>& waiting = waiting_[channel];
    const bool other_kind =
        !waiting.empty() && (waiting.front()->source == nullptr) != (posting.source == nullptr);
    if (!other_kind) {
      waiting.push_back(&posting);
      return nullptr;
    }
    Posting* other = waiting.front();
    waiting.pop_front();
    if (waiting.empty()) waiting_.erase(channel);
    other->met = true;
    posting.met = true;
    return other;
  }

  // False if it has met its other side, which is copying or has copied.
  bool withdraw(const Channel& channel, Posting& posting) {
    const std::lock_guard lock(mutex_);
    if (posting.met) return false;
    std::deque<Posting*>& waiting = waiting_[channel];
    waiting.erase(std::find(waiting.begin(), waiting.end(), &posting));
    if (waiting.empty()) waiting_.erase(channel);
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Channel, std::deque<Posting*>, ChannelHash> waiting_;
};

class ThreadTransfer final : public MessageTransfer {
 public:
  ThreadTransfer(Mailbox& mailbox, const Channel& channel, const std::byte* source,
                 std::byte* target, std::size_t bytes)
      : mailbox_(mailbox), channel_(channel) {
    posting_.source = source;
    posting_.target = target;
    posting_.bytes = bytes;
    Posting* other = mailbox_.meet(channel_, posting_);
    if (other == nullptr) return;
    if (source != nullptr) {
      carry_out(posting_, *other);
    } else {
      carry_out(*other, posting_);
    }
  }
  ~ThreadTransfer() override {
    if (posting_.ended.load(std::memory_order_acquire)) return;
    if (mailbox_.withdraw(channel_, posting_)) return;
    while (!posting_.ended.load(std::memory_order_acquire)) sched_yield();
  }
  ThreadTransfer(const ThreadTransfer&) = delete;
  ThreadTransfer& operator=(const ThreadTransfer&) = delete;

  bool poll() override {
    if (!posting_.ended.load(std::memory_order_acquire)) return false;
    if (posting_.bytes != posting_.bytes_of_other) {
      throw CommunicationError(fmt::format("{} bytes here, {} bytes at the other end",
                                           posting_.bytes, posting_.bytes_of_other));
    }
    return true;
  }

 private:
  Mailbox& mailbox_;
  const Channel channel_;
  Posting posting_;
};

struct ThreadHub {
  explicit ThreadHub(int processes) : mailboxes(static_cast<std::size_t>(processes)) {}

  std::vector<Mailbox> mailboxes;  // by receiver; their channels' peer is the sender
  std::mutex mutex;
  std::unordered_map<std::string, ContextId> contexts;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<ThreadHub> hub, int process)
      : hub_(std::move(hub)), process_(process) {}

  int process() const override { return process_; }
  int processes() const override { return static_cast<int>(hub_->mailboxes.size()); }

  ContextId context(const std::string& name) override {
    const std::lock_guard lock(hub_->mutex);
    const auto next = static_cast<ContextId>(hub_->contexts.size());
    return hub_->contexts.emplace(name, next).first->second;
  }

  std::unique_ptr<MessageTransfer> start_send(std::span<const std::byte> data,
                                              const Channel& to) override {
    Channel seen_there = to;
    seen_there.peer = process_;
    return std::make_unique<ThreadTransfer>(mailbox(to.peer), seen_there, address(data), nullptr,
                                            data.size());
  }

  std::unique_ptr<MessageTransfer> start_receive(std::span<std::byte> data,
                                                 const Channel& from) override {
    return std::make_unique<ThreadTransfer>(mailbox(process_), from, nullptr, data.data(),
                                            data.size());
  }

 private:
  // A send is told by its source, also when it is empty.
  static const std::byte* address(std::span<const std::byte> data) {
    static constexpr std::byte kNothing{};
    return data.empty() ? &kNothing : data.data();
  }
  Mailbox& mailbox(int process) { return hub_->mailboxes[static_cast<std::size_t>(process)]; }

  const std::shared_ptr<ThreadHub> hub_;
  const int process_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> thread_world(int ranks) {
  STEPCAST_ASSERT(ranks > 0, "a world has ranks");
  const auto hub = std::make_shared<ThreadHub>(ranks);
  std::vector<std::unique_ptr<Communicator>> world;
  for (int rank = 0; rank < ranks; ++rank) {
    auto progress = std::make_shared<ProgressDriver>(std::make_shared<ThreadTransport>(hub, rank));
    world.push_back(std::make_unique<GroupCommunicator>(
        std::make_shared<RankGroup>(std::move(progress), "world")));
  }
  return world;
}

}  // namespace stepcast
