// SPDX-License-Identifier: Apache-2.0
// A store of few and small values, such as NCCL's unique ids, that the ranks of a job need before
// they can communicate. Rank 0 keeps them, and the others ask it over TCP.
//
// Use it on trusted networks only, like the stores of other launchers: whoever reaches the port may
// read and write.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

using StoreValue = std::vector<std::byte>;

// Keeps the values; one in the job, in rank 0. Serves until it is destroyed.
class TcpStoreServer {
 public:
  // Port 0 takes a free one. Throws CommunicationError where the port cannot be had.
  explicit TcpStoreServer(std::uint16_t port);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A rank's connection. Calls throw CommunicationError, naming the server, once it has been silent
// for the time limit or is gone. Used by one thread at a time.
class TcpStore {
 public:
  // Tries again until the server is up: ranks do not start together.
  TcpStore(const std::string& host, std::uint16_t port, std::chrono::milliseconds time_limit);
  ~TcpStore();
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  // A value is set once: a second one under its key is an error of the caller.
  void set(const std::string& key, const StoreValue& value);
  std::optional<StoreValue> look_up(const std::string& key);
  // Waits until somebody has set it.
  StoreValue get(const std::string& key);

 private:
  std::string server_;  // "host:port", for errors
  std::chrono::milliseconds time_limit_;
  int socket_ = -1;
};

}  // namespace stepcast
