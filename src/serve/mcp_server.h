// SPDX-License-Identifier: Apache-2.0
// The Model Context Protocol over lines of JSON-RPC 2.0, for clients of revision 2026-07-28, whose
// requests name their revision themselves, and of the older ones, which begin with `initialize`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/mcp_tools.h"

namespace stepcast {

class McpServer {
 public:
  McpServer(ToolContext context, std::string version, std::vector<McpTool> tools = mcp_tools())
      : context_(std::move(context)), version_(std::move(version)), tools_(std::move(tools)) {}

  // Answers one message, without its line feed, with one line. Nothing where the protocol wants no
  // answer, as for a notification. Nothing that a client sends ends the server. A call ends early
  // once `cancelled` is true.
  std::optional<std::string> answer(std::string_view message,
                                    const std::function<bool()>& cancelled = {}) const;
  // Answers one that has been read, or what was wrong with it, likewise.
  std::optional<std::string> answer_read(const Result<Json>& message,
                                         const std::function<bool()>& cancelled = {}) const;

  // The answer to a line of more than kLongestMessage bytes, which is not read to its end.
  std::string too_long() const;

 private:
  ToolContext context_;
  std::string version_;
  std::vector<McpTool> tools_;
};

// A message with a suite or a model inside has some tens of kilobytes.
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 20;

}  // namespace stepcast
