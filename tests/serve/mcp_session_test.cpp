// SPDX-License-Identifier: Apache-2.0
// Clients send more while the server is at work. The calls that are cancelled here would search
// for minutes, and then answer.
#include "serve/mcp_session.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "places.h"

namespace stepcast {
namespace {

using nlohmann::json;

std::string request(int id, const std::string& method, const json& params = json::object()) {
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}.dump();
}

std::string long_search(int id) {
  const json scenario{{"model", "deepseek-v3"},
                      {"cluster", "dgx-h100x256"},
                      {"training", {{"global_batch", 16384}, {"sequence_length", 4096}}}};
  return request(id, "tools/call",
                 {{"name", "plan"}, {"arguments", {{"scenario", scenario}, {"places", 10}}}});
}

std::string list_of_schedules(int id) {
  return request(id, "tools/call", {{"name", "list"}, {"arguments", {{"topic", "schedules"}}}});
}

std::string cancelled(int id) {
  return json{
      {"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}}
      .dump();
}

// The ids of the answers to these lines, in their order.
std::vector<int> answered(const std::vector<std::string>& lines) {
  const McpServer server({*api::Data::open(source_folder()), Seconds(600), 1}, "0.1.0");
  std::vector<int> out;
  {
    McpSession session(server, [&](const std::string& answer) {
      out.push_back(json::parse(answer).at("id").get<int>());
      return true;
    });
    for (const std::string& line : lines) EXPECT_TRUE(session.take(line));
  }
  return out;
}

TEST(McpSession, AnswersCallsInTheirOrder) {
  EXPECT_EQ(answered({list_of_schedules(1), list_of_schedules(2), list_of_schedules(3)}),
            (std::vector{1, 2, 3}));
}

TEST(McpSession, ACancelledCallEndsAndGetsNoAnswer) {
  EXPECT_EQ(answered({long_search(1), cancelled(1), list_of_schedules(2)}), std::vector{2});
}

TEST(McpSession, ACallThatIsCancelledBeforeItBeginsNeverDoes) {
  EXPECT_EQ(answered({long_search(1), long_search(2), cancelled(2), cancelled(1)}),
            std::vector<int>{});
}

TEST(McpSession, APingIsAnsweredDuringACall) {
  EXPECT_EQ(answered({long_search(1), request(2, "ping"), list_of_schedules(3), cancelled(1)}),
            (std::vector{2, 3}));
}

TEST(McpSession, EndsItsWorkOnceNobodyReads) {
  const McpServer server({*api::Data::open(source_folder()), Seconds(600), 1}, "0.1.0");
  McpSession session(server, [](const std::string&) { return false; });
  session.take(long_search(1));
  EXPECT_FALSE(session.take(request(2, "ping")));
}

}  // namespace
}  // namespace stepcast
