// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_session.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/parse_json.h"

namespace stepcast {
namespace {

// The text at a key of an object, or nothing.
std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json value_at(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? Json(nullptr) : Json(*found);
}

}  // namespace

McpSession::McpSession(const McpServer& server, Write write)
    : server_(server), write_(std::move(write)) {
  try {
    answering_ = std::thread([this] { answer_all(); });
  } catch (const std::system_error&) {
    // There are no threads, as in WebAssembly: take() answers.
  }
}

McpSession::~McpSession() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (answering_.joinable()) answering_.join();
}

bool McpSession::take(const std::string& line) {
  auto message = parse_ordered_json(line, "");
  const bool is_object = message && message->is_object();
  const std::string method = is_object ? text_at(*message, "method") : "";
  if (method == "notifications/cancelled") {
    cancel(value_at(value_at(*message, "params"), "requestId"));
    return !is_deaf_;
  }
  if (!is_object || method == "ping" || !answering_.joinable()) {
    if (const auto answer = server_.answer_read(message)) write(*answer);
    return !is_deaf_;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting || is_deaf_; });
  Json id = value_at(*message, "id");
  waiting_.push_back({std::move(message), std::move(id)});
  changed_.notify_all();
  return !is_deaf_;
}

bool McpSession::take_too_long() {
  write(server_.too_long());
  return !is_deaf_;
}

void McpSession::cancel(const Json& id) {
  if (id.is_null()) return;
  const std::lock_guard lock(mutex_);
  if (running_ == id) is_cancelled_ = true;
  std::erase_if(waiting_, [&](const Waiting& one) { return one.id == id; });
}

void McpSession::write(const std::string& answer) {
  const std::lock_guard lock(writing_);
  if (!is_deaf_ && !write_(answer)) is_deaf_ = true;
}

void McpSession::answer_all() {
  while (true) {
    Waiting next{Json(), nullptr};
    {
      std::unique_lock lock(mutex_);
      running_ = nullptr;
      changed_.wait(lock, [&] { return has_ended_ || is_deaf_ || !waiting_.empty(); });
      if (waiting_.empty() || is_deaf_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = next.id;
      is_cancelled_ = false;
    }
    changed_.notify_all();
    const auto answer =
        server_.answer_read(next.message, [&] { return is_cancelled_ || is_deaf_; });
    if (answer && !is_cancelled_) write(*answer);
  }
}

}  // namespace stepcast
