// SPDX-License-Identifier: Apache-2.0
// One client's dialogue. Requests are answered one at a time, in their order, by a thread of the
// session's own. What need not wait is done as it comes: a ping and what is no message are
// answered, and a call that the client cancels ends, or never begins. It gets no answer then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/json_tree.h"
#include "serve/mcp_server.h"

namespace stepcast {

class McpSession {
 public:
  // `write` is given one line at a time, of either thread. It says whether the client still reads.
  using Write = std::function<bool(const std::string& line)>;
  McpSession(const McpServer& server, Write write);
  // Answers what has come before it returns.
  ~McpSession();
  McpSession(const McpSession&) = delete;
  McpSession& operator=(const McpSession&) = delete;

  // The client's next line; waits while too many are unanswered. False once nobody reads answers.
  bool take(const std::string& line);
  bool take_too_long();

 private:
  struct Waiting {
    Result<Json> message;
    Json id;
  };
  void answer_all();
  void cancel(const Json& id);
  void write(const std::string& answer);

  static constexpr std::size_t kMostWaiting = 64;

  const McpServer& server_;
  const Write write_;
  std::mutex mutex_, writing_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  Json running_ = nullptr;  // the id of the request that is being answered
  std::atomic<bool> is_cancelled_ = false, is_deaf_ = false;  // that request; the client
  bool has_ended_ = false;
  std::thread answering_;  // none where none can be started: each request is answered as it comes
};

}  // namespace stepcast
