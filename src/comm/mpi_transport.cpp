// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_transport.h"

#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/idle.h"
#include "core/assert.h"

namespace stepcast {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(fmt::format("{}: {}", call, text));
}

namespace {

constexpr int kAnnouncement = 0;  // the MPI tag of announcements; channels are 1, 2, ...

int int_size(std::size_t bytes) {
  STEPCAST_ASSERT(bytes <= INT_MAX, "a message of more bytes than MPI counts is cut into pieces");
  return static_cast<int>(bytes);
}

bool ended(MPI_Request& request, const char* call, MPI_Status* status = MPI_STATUS_IGNORE) {
  int flag = 0;
  check_mpi(MPI_Test(&request, &flag, status), call);
  return flag != 0;
}

// True once it has ended. Errors are ignored, because nobody needs the message any more.
bool ended_somehow(MPI_Request& request) noexcept {
  int flag = 0;
  return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

class MpiChannels;

class SendTransfer final : public MessageTransfer {
 public:
  SendTransfer(MpiChannels& channels, std::span<const std::byte> data, int peer, int number,
               MPI_Comm comm)
      : channels_(channels) {
    check_mpi(
        MPI_Isend(data.data(), int_size(data.size()), MPI_BYTE, peer, number, comm, &request_),
        "MPI_Isend");
  }
  ~SendTransfer() override;
  SendTransfer(const SendTransfer&) = delete;
  SendTransfer& operator=(const SendTransfer&) = delete;

  bool poll() override { return ended(request_, "sending"); }

 private:
  MpiChannels& channels_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class ReceiveTransfer final : public MessageTransfer {
 public:
  ReceiveTransfer(MpiChannels& channels, std::span<std::byte> data, const Channel& from)
      : channels_(channels), data_(data), from_(from) {}
  ~ReceiveTransfer() override;
  ReceiveTransfer(const ReceiveTransfer&) = delete;
  ReceiveTransfer& operator=(const ReceiveTransfer&) = delete;

  bool poll() override;
  // The channel's number has become known.
  void post(int number, MPI_Comm comm) {
    check_mpi(MPI_Irecv(data_.data(), int_size(data_.size()), MPI_BYTE, from_.peer, number, comm,
                        &request_),
              "MPI_Irecv");
    posted_.store(true, std::memory_order_release);
  }

 private:
  MpiChannels& channels_;
  const std::span<std::byte> data_;
  const Channel from_;
  std::atomic<bool> posted_ = false;  // maybe by another thread, which writes request_ before
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// How an announcement travels: these two, then the context's name.
struct AnnouncementHead {
  std::int64_t tag;
  std::int32_t number;
};

struct Announcement {
  std::vector<char> text;
  MPI_Request request = MPI_REQUEST_NULL;
  int peer = 0;
};

class MpiChannels final : public MpiTransport {
 public:
  MpiChannels();

  int process() const override { return process_; }
  int processes() const override { return processes_; }
  ContextId context(const std::string& name) override;
  std::unique_ptr<MessageTransfer> start_send(std::span<const std::byte> data,
                                              const Channel& to) override;
  std::unique_ptr<MessageTransfer> start_receive(std::span<std::byte> data,
                                                 const Channel& from) override;
  bool close() override;

  // Takes announcements that have come, and posts the receives that waited for them.
  void learn();
  void withdraw(const Channel& channel, ReceiveTransfer& receive);
  // MPI cannot withdraw a send, nor a receive that has met its message.
  void leave_behind(MPI_Request& request);

 private:
  struct Incoming {
    int number = 0;                        // 0: not announced yet
    std::deque<ReceiveTransfer*> waiting;  // for the announcement
  };

  // Callers of these hold mutex_.
  ContextId known_context(const std::string& name);
  void announce(const Channel& to, int number);
  void forget_ended_announcements();
  bool take_announcement();
  void register_channel(const Announcement& announcement);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0, processes_ = 0, largest_tag_ = 0;

  std::mutex mutex_;
  std::unordered_map<std::string, ContextId> contexts_;
  std::vector<std::string> names_;  // by context
  std::unordered_map<Channel, int, ChannelHash> outgoing_;
  std::unordered_map<Channel, Incoming, ChannelHash> incoming_;
  std::list<Announcement> announced_;     // until MPI has taken them
  std::optional<Announcement> arriving_;  // being received
  std::vector<MPI_Request> left_behind_;
};

SendTransfer::~SendTransfer() { channels_.leave_behind(request_); }

ReceiveTransfer::~ReceiveTransfer() {
  if (!posted_.load(std::memory_order_acquire)) channels_.withdraw(from_, *this);
  if (request_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request_);
  channels_.leave_behind(request_);
}

bool ReceiveTransfer::poll() {
  if (!posted_.load(std::memory_order_acquire)) {
    channels_.learn();
    if (!posted_.load(std::memory_order_acquire)) return false;
  }
  if (request_ == MPI_REQUEST_NULL) return true;
  MPI_Status status;
  if (!ended(request_, "receiving", &status)) return false;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (bytes != int_size(data_.size())) {
    throw CommunicationError(
        fmt::format("{} bytes here, {} bytes at the other end", data_.size(), bytes));
  }
  return true;
}

MpiChannels::MpiChannels() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &process_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &processes_), "MPI_Comm_size");
  int* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &largest, &found), "MPI_Comm_get_attr");
  constexpr int kGuaranteedByTheStandard = 32767;
  largest_tag_ = found != 0 ? *largest : kGuaranteedByTheStandard;
}

ContextId MpiChannels::context(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return known_context(name);
}

ContextId MpiChannels::known_context(const std::string& name) {
  const auto [place, is_new] = contexts_.try_emplace(name, static_cast<ContextId>(names_.size()));
  if (is_new) names_.push_back(name);
  return place->second;
}

std::unique_ptr<MessageTransfer> MpiChannels::start_send(std::span<const std::byte> data,
                                                         const Channel& to) {
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto next = static_cast<int>(outgoing_.size()) + 1;
    const auto [place, is_new] = outgoing_.try_emplace(to, next);
    number = place->second;
    if (is_new) announce(to, number);
  }
  return std::make_unique<SendTransfer>(*this, data, to.peer, number, comm_);
}

void MpiChannels::announce(const Channel& to, int number) {
  if (number > largest_tag_) {
    throw CommunicationError(
        fmt::format("process {} uses more channels than this MPI library has tags ({})", process_,
                    largest_tag_));
  }
  forget_ended_announcements();
  const std::string& name = names_[static_cast<std::size_t>(to.context)];
  const AnnouncementHead head{.tag = to.tag, .number = number};
  Announcement& announcement = announced_.emplace_back();
  announcement.text.resize(sizeof(head) + name.size());
  std::memcpy(announcement.text.data(), &head, sizeof(head));
  std::memcpy(announcement.text.data() + sizeof(head), name.data(), name.size());
  check_mpi(MPI_Isend(announcement.text.data(), int_size(announcement.text.size()), MPI_BYTE,
                      to.peer, kAnnouncement, comm_, &announcement.request),
            "MPI_Isend");
}

void MpiChannels::forget_ended_announcements() {
  while (!announced_.empty() && ended(announced_.front().request, "announcing a channel")) {
    announced_.pop_front();
  }
}

std::unique_ptr<MessageTransfer> MpiChannels::start_receive(std::span<std::byte> data,
                                                            const Channel& from) {
  auto receive = std::make_unique<ReceiveTransfer>(*this, data, from);
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_[from];
  if (incoming.number == 0) {
    incoming.waiting.push_back(receive.get());
  } else {
    receive->post(incoming.number, comm_);
  }
  return receive;
}

void MpiChannels::withdraw(const Channel& channel, ReceiveTransfer& receive) {
  const std::lock_guard lock(mutex_);
  std::erase(incoming_[channel].waiting, &receive);
}

void MpiChannels::learn() {
  const std::lock_guard lock(mutex_);
  while (take_announcement()) {
  }
}

bool MpiChannels::take_announcement() {
  if (!arriving_) {
    int flag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, kAnnouncement, comm_, &flag, &message, &status),
              "MPI_Improbe");
    if (flag == 0) return false;
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    Announcement& arriving = arriving_.emplace();
    arriving.peer = status.MPI_SOURCE;
    arriving.text.resize(static_cast<std::size_t>(bytes));
    check_mpi(MPI_Imrecv(arriving.text.data(), bytes, MPI_BYTE, &message, &arriving.request),
              "MPI_Imrecv");
  }
  if (!ended(arriving_->request, "receiving an announcement")) return false;
  register_channel(*std::exchange(arriving_, std::nullopt));
  return true;
}

void MpiChannels::register_channel(const Announcement& announcement) {
  AnnouncementHead head{};
  STEPCAST_ASSERT(announcement.text.size() >= sizeof(head), "an announcement has a head");
  std::memcpy(&head, announcement.text.data(), sizeof(head));
  const std::string name(announcement.text.begin() + sizeof(head), announcement.text.end());
  Incoming& incoming =
      incoming_[{.peer = announcement.peer, .context = known_context(name), .tag = head.tag}];
  incoming.number = head.number;
  for (ReceiveTransfer* receive : std::exchange(incoming.waiting, {})) {
    receive->post(head.number, comm_);
  }
}

void MpiChannels::leave_behind(MPI_Request& request) {
  if (request == MPI_REQUEST_NULL || ended_somehow(request)) return;
  const std::lock_guard lock(mutex_);
  left_behind_.push_back(request);
}

bool MpiChannels::close() {
  const std::lock_guard lock(mutex_);
  for (Announcement& announcement : announced_) left_behind_.push_back(announcement.request);
  // A message that only waits for its receiver to look at MPI again ends when the receiver closes,
  // too.
  constexpr std::chrono::seconds kLimit(5);
  const auto begin = std::chrono::steady_clock::now();
  Idle idle;
  while (std::erase_if(left_behind_, ended_somehow), !left_behind_.empty()) {
    if (std::chrono::steady_clock::now() - begin > kLimit) return false;
    idle.pause();
  }
  check_mpi(MPI_Comm_free(&comm_), "MPI_Comm_free");
  return true;
}

}  // namespace

std::shared_ptr<MpiTransport> make_mpi_transport() { return std::make_shared<MpiChannels>(); }

}  // namespace stepcast
