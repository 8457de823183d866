// SPDX-License-Identifier: Apache-2.0
// Frames: a request is its kind (one byte), the lengths of key and value (32 bits each, network
// order), key, value; an answer is a status (one byte), the length of the value, the value.
#include "comm/tcp_store.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>

#include "comm/communicator.h"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

enum class Question : std::uint8_t { kSet = 1, kLookUp = 2 };
enum class Status : std::uint8_t { kDone = 1, kNothing = 2, kTaken = 3 };

constexpr std::size_t kHead = 9;  // of a request
constexpr std::size_t kAnswerHead = 5;
// No value of a rank is longer. The limit keeps a stranger's bytes from taking memory.
constexpr std::uint32_t kLongest = 1 << 16;
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr std::chrono::milliseconds kBetweenLooks{5};

std::string reason() { return std::strerror(errno); }

void put(StoreValue& out, std::uint32_t number) {
  const std::uint32_t wire = htonl(number);
  const auto* bytes = reinterpret_cast<const std::byte*>(&wire);
  out.insert(out.end(), bytes, bytes + sizeof wire);
}

std::uint32_t number_at(const std::byte* bytes) {
  std::uint32_t wire = 0;
  std::memcpy(&wire, bytes, sizeof wire);
  return ntohl(wire);
}

// True once the socket is ready; false at the deadline.
bool wait_for(int socket, short events, Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw CommunicationError("poll: " + reason());
  }
}

// All bytes or an exception with the reason.
void send_all(int socket, const StoreValue& data, Clock::time_point deadline) {
  for (std::size_t sent = 0; sent < data.size();) {
    if (!wait_for(socket, POLLOUT, deadline)) throw CommunicationError("no answer in time");
    const ssize_t n = ::send(socket, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR && errno != EAGAIN) throw CommunicationError(reason());
  }
}

void receive_all(int socket, std::byte* data, std::size_t size, Clock::time_point deadline) {
  for (std::size_t got = 0; got < size;) {
    if (!wait_for(socket, POLLIN, deadline)) throw CommunicationError("no answer in time");
    const ssize_t n = ::recv(socket, data + got, size - got, 0);
    if (n > 0) got += static_cast<std::size_t>(n);
    if (n == 0) throw CommunicationError("it closed the connection");
    if (n < 0 && errno != EINTR && errno != EAGAIN) throw CommunicationError(reason());
  }
}

void without_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The first address of the host that answers, or -1.
int try_connect(const std::string& host, std::uint16_t port, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    why = ::gai_strerror(code);
    return -1;
  }
  int out = -1;
  for (const addrinfo* at = found; at != nullptr && out < 0; at = at->ai_next) {
    const int candidate = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (candidate < 0) continue;
    if (::connect(candidate, at->ai_addr, at->ai_addrlen) == 0) {
      out = candidate;
    } else {
      why = reason();
      ::close(candidate);
    }
  }
  ::freeaddrinfo(found);
  return out;
}

}  // namespace

struct TcpStoreServer::State {
  // A connection that the server reads; its bytes until a request is whole.
  struct Client {
    StoreValue received;
  };

  int listener = -1;
  std::array<int, 2> wake{-1, -1};  // a pipe: the destructor ends the thread by it
  std::uint16_t port = 0;
  std::map<std::string, StoreValue> values;
  std::map<int, Client> clients;
  std::thread thread;

  void serve();
  bool read_from(int socket, Client& client);  // false when the client is gone
  bool answer(int socket, Client& client);     // whole requests only; false for a stranger
  ~State();
};

TcpStoreServer::State::~State() {
  for (const auto& [socket, client] : clients) ::close(socket);
  for (const int file : {listener, wake[0], wake[1]}) {
    if (file >= 0) ::close(file);
  }
}

bool TcpStoreServer::State::answer(int socket, Client& client) {
  StoreValue& data = client.received;
  while (data.size() >= kHead) {
    const std::uint32_t key_size = number_at(data.data() + 1);
    const std::uint32_t value_size = number_at(data.data() + 5);
    if (key_size > kLongest || value_size > kLongest) return false;
    const std::size_t whole = kHead + key_size + value_size;
    if (data.size() < whole) return true;
    const auto* text = reinterpret_cast<const char*>(data.data() + kHead);
    const std::string key(text, key_size);
    const auto kind = static_cast<Question>(data[0]);
    Status status = Status::kDone;
    StoreValue value;
    if (kind == Question::kSet) {
      const auto begin = data.begin() + static_cast<std::ptrdiff_t>(kHead + key_size);
      const StoreValue stated(begin, begin + static_cast<std::ptrdiff_t>(value_size));
      if (!values.emplace(key, stated).second) status = Status::kTaken;
    } else if (kind == Question::kLookUp) {
      const auto found = values.find(key);
      if (found == values.end()) status = Status::kNothing;
      if (found != values.end()) value = found->second;
    } else {
      return false;
    }
    data.erase(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(whole));
    StoreValue out{static_cast<std::byte>(status)};
    put(out, static_cast<std::uint32_t>(value.size()));
    out.insert(out.end(), value.begin(), value.end());
    try {
      send_all(socket, out, Clock::now() + std::chrono::seconds(5));
    } catch (const CommunicationError&) {
      return false;  // its own end says more
    }
  }
  return true;
}

bool TcpStoreServer::State::read_from(int socket, Client& client) {
  std::array<std::byte, 4096> piece;
  const ssize_t n = ::recv(socket, piece.data(), piece.size(), 0);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  client.received.insert(client.received.end(), piece.begin(), piece.begin() + n);
  return answer(socket, client);
}

void TcpStoreServer::State::serve() {
  while (true) {
    std::vector<pollfd> waiting{{wake[0], POLLIN, 0}, {listener, POLLIN, 0}};
    for (const auto& [socket, client] : clients) waiting.push_back({socket, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    if (waiting[1].revents != 0) {
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) {
        without_delay(socket);
        clients[socket];
      }
    }
    for (std::size_t i = 2; i < waiting.size(); ++i) {
      const int socket = waiting[i].fd;
      if (waiting[i].revents == 0 || read_from(socket, clients[socket])) continue;
      ::close(socket);
      clients.erase(socket);
    }
  }
}

TcpStoreServer::TcpStoreServer(std::uint16_t port) : state_(std::make_unique<State>()) {
  const auto check = [&](bool good, const char* call) {
    if (good) return;
    throw CommunicationError(
        fmt::format("the store of rank 0 cannot serve port {}: {}: {} (MASTER_PORT names another)",
                    port, call, reason()));
  };
  check(::pipe(state_->wake.data()) == 0, "pipe");
  // Both families on one socket.
  state_->listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool both = state_->listener >= 0;
  if (!both) state_->listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(state_->listener >= 0, "socket");
  const int on = 1, off = 0;
  ::setsockopt(state_->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 wide{};
  sockaddr_in narrow{};
  if (both) {
    ::setsockopt(state_->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    wide.sin6_family = AF_INET6;
    wide.sin6_port = htons(port);
    check(::bind(state_->listener, reinterpret_cast<sockaddr*>(&wide), sizeof wide) == 0, "bind");
  } else {
    narrow.sin_family = AF_INET;
    narrow.sin_port = htons(port);
    check(::bind(state_->listener, reinterpret_cast<sockaddr*>(&narrow), sizeof narrow) == 0,
          "bind");
  }
  check(::listen(state_->listener, SOMAXCONN) == 0, "listen");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  check(::getsockname(state_->listener, reinterpret_cast<sockaddr*>(&bound), &size) == 0,
        "getsockname");
  // The port stands at the same place in both.
  state_->port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  state_->thread = std::thread([this] { state_->serve(); });
}

TcpStoreServer::~TcpStoreServer() {
  const char stop = 0;
  if (::write(state_->wake[1], &stop, 1) == 1) state_->thread.join();
  // A pipe that takes no byte is broken beyond repair; the thread goes with the process.
  if (state_->thread.joinable()) {
    state_->thread.detach();
    static_cast<void>(state_.release());
  }
}

std::uint16_t TcpStoreServer::port() const { return state_->port; }

TcpStore::TcpStore(const std::string& host, std::uint16_t port,
                   std::chrono::milliseconds time_limit)
    : server_(fmt::format("{}:{}", host, port)), time_limit_(time_limit) {
  const auto deadline = Clock::now() + time_limit;
  std::string why;
  while ((socket_ = try_connect(host, port, why)) < 0) {
    if (Clock::now() >= deadline) {
      throw CommunicationError(
          fmt::format("rank 0's store at {} cannot be reached within {} s: {} (MASTER_ADDR and "
                      "MASTER_PORT name it)",
                      server_, std::chrono::duration<double>(time_limit).count(), why));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  without_delay(socket_);
}

TcpStore::~TcpStore() {
  if (socket_ >= 0) ::close(socket_);
}

namespace {

// One request and its answer.
std::pair<Status, StoreValue> ask(int socket, Question kind, const std::string& key,
                                  const StoreValue& value, Clock::time_point deadline) {
  if (key.size() > kLongest || value.size() > kLongest) {
    throw CommunicationError(fmt::format("'{}' is too long for the store", key.substr(0, 80)));
  }
  StoreValue out{static_cast<std::byte>(kind)};
  put(out, static_cast<std::uint32_t>(key.size()));
  put(out, static_cast<std::uint32_t>(value.size()));
  const auto* text = reinterpret_cast<const std::byte*>(key.data());
  out.insert(out.end(), text, text + key.size());
  out.insert(out.end(), value.begin(), value.end());
  send_all(socket, out, deadline);
  std::array<std::byte, kAnswerHead> head;
  receive_all(socket, head.data(), head.size(), deadline);
  const std::uint32_t size = number_at(head.data() + 1);
  if (size > kLongest) throw CommunicationError("it is no store of this program");
  StoreValue answer(size);
  receive_all(socket, answer.data(), answer.size(), deadline);
  return {static_cast<Status>(head[0]), std::move(answer)};
}

[[noreturn]] void rethrow(const std::string& server, const std::string& key,
                          const CommunicationError& error) {
  throw CommunicationError(
      fmt::format("rank 0's store at {}, asked for '{}': {}", server, key, error.what()));
}

}  // namespace

void TcpStore::set(const std::string& key, const StoreValue& value) {
  Status status = Status::kDone;
  try {
    status = ask(socket_, Question::kSet, key, value, Clock::now() + time_limit_).first;
  } catch (const CommunicationError& error) {
    rethrow(server_, key, error);
  }
  if (status == Status::kDone) return;
  throw CommunicationError(
      fmt::format("'{}' is set twice in rank 0's store at {}: two jobs, or two "
                  "ranks of one number, share it",
                  key, server_));
}

std::optional<StoreValue> TcpStore::look_up(const std::string& key) {
  try {
    auto [status, value] = ask(socket_, Question::kLookUp, key, {}, Clock::now() + time_limit_);
    if (status == Status::kDone) return std::move(value);
  } catch (const CommunicationError& error) {
    rethrow(server_, key, error);
  }
  return std::nullopt;
}

StoreValue TcpStore::get(const std::string& key) {
  const auto deadline = Clock::now() + time_limit_;
  while (true) {
    if (auto value = look_up(key)) return std::move(*value);
    if (Clock::now() >= deadline) {
      throw CommunicationError(
          fmt::format("nobody has set '{}' in rank 0's store at {} within {} s: a rank is missing",
                      key, server_, std::chrono::duration<double>(time_limit_).count()));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace stepcast
