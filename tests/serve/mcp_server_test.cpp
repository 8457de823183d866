// SPDX-License-Identifier: Apache-2.0
// Dialogues of clients with the server, of the newest revision of the protocol and of older ones.
#include "serve/mcp_server.h"
#include "places.h"

#include <gtest/gtest.h>

#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/assert.h"
#include "core/json_tree.h"
#include "core/work_limits.h"

namespace stepcast {
namespace {

using nlohmann::json;

json scenario() {
  return {{"model", "llama-3.1-8b"},
          {"cluster", "dgx-h100x2"},
          {"training", {{"global_batch", 128}, {"sequence_length", 8192}}}};
}

class Dialogue : public ::testing::Test {
 protected:
  static McpServer server(Seconds limit = Seconds(60)) {
    auto data = api::Data::open(source_folder());
    EXPECT_TRUE(data.has_value());
    return McpServer({*data, limit, 2}, "0.1.0");
  }
  // The answer to a request, as a message.
  json ask(const json& request) const { return read(server_.answer(request.dump())); }
  static json read(const std::optional<std::string>& line) {
    EXPECT_TRUE(line.has_value());
    EXPECT_EQ(line->find('\n'), std::string::npos);
    const json out = json::parse(*line);
    EXPECT_EQ(out.at("jsonrpc"), "2.0");
    return out;
  }
  json call(const std::string& tool, const json& arguments) const {
    const json answer = ask({{"jsonrpc", "2.0"},
                             {"id", 7},
                             {"method", "tools/call"},
                             {"params", {{"name", tool}, {"arguments", arguments}}}});
    EXPECT_EQ(answer.at("id"), 7);
    return answer.at("result");
  }
  // The JSON of a tool's answer.
  json answer_of(const std::string& tool, const json& arguments) const {
    const json result = call(tool, arguments);
    const auto text = result.at("content").at(0).at("text").get<std::string>();
    EXPECT_FALSE(result.at("isError").get<bool>()) << text;
    return json::parse(text);
  }
  std::string error_of(const std::string& tool, const json& arguments) const {
    const json result = call(tool, arguments);
    EXPECT_TRUE(result.at("isError").get<bool>());
    return result.at("content").at(0).at("text").get<std::string>();
  }

  const McpServer server_ = server();
};

TEST_F(Dialogue, OlderClientsBeginWithAHandshake) {
  for (const std::string revision : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) {
    const json answer = ask({{"jsonrpc", "2.0"},
                             {"id", "a"},
                             {"method", "initialize"},
                             {"params", {{"protocolVersion", revision}}}});
    EXPECT_EQ(answer.at("id"), "a");
    EXPECT_EQ(answer.at("result").at("protocolVersion"), revision);
    EXPECT_TRUE(answer.at("result").at("capabilities").contains("tools"));
    EXPECT_EQ(answer.at("result").at("serverInfo").at("name"), "stepcast");
    EXPECT_FALSE(answer.at("result").contains("resultType"));
  }
  const json other = ask({{"jsonrpc", "2.0"},
                          {"id", 1},
                          {"method", "initialize"},
                          {"params", {{"protocolVersion", "1999-01-01"}}}});
  EXPECT_EQ(other.at("result").at("protocolVersion"), "2025-11-25");
  EXPECT_FALSE(server_.answer(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"));
  EXPECT_EQ(ask({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "ping"}}).at("result"), json::object());
}

TEST_F(Dialogue, TheNewestRevisionStandsInEachRequest) {
  const json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}};
  const json found = ask({{"jsonrpc", "2.0"},
                          {"id", 1},
                          {"method", "server/discover"},
                          {"params", {{"_meta", meta}}}})
                         .at("result");
  EXPECT_EQ(found.at("supportedVersions"), json::array({"2026-07-28"}));
  EXPECT_EQ(found.at("resultType"), "complete");
  const json list =
      ask({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "tools/list"}, {"params", {{"_meta", meta}}}})
          .at("result");
  EXPECT_GT(list.at("ttlMs"), 0);
  EXPECT_EQ(list.at("cacheScope"), "public");
  const json wrong =
      ask({{"jsonrpc", "2.0"},
           {"id", 3},
           {"method", "tools/list"},
           {"params", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "x"}}}}}});
  EXPECT_EQ(wrong.at("error").at("code"), -32022);
  EXPECT_EQ(wrong.at("error").at("data").at("requested"), "x");
  EXPECT_EQ(wrong.at("error").at("data").at("supported"), json::array({"2026-07-28"}));
}

TEST_F(Dialogue, ToolsAreListedWithSchemasFromTheTablesOfKeys) {
  const json tools =
      ask({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/list"}}).at("result").at("tools");
  std::set<std::string> names;
  for (const json& tool : tools) {
    names.insert(tool.at("name").get<std::string>());
    const json& schema = tool.at("inputSchema");
    EXPECT_EQ(schema.at("type"), "object");
    for (const json& required : schema.at("required")) {
      EXPECT_TRUE(schema.at("properties").contains(required.get<std::string>()));
    }
    EXPECT_TRUE(tool.at("annotations").at("readOnlyHint").get<bool>());
  }
  EXPECT_EQ(names, (std::set<std::string>{"predict", "plan", "compare", "why_not", "check",
                                          "explain_key", "list"}));
  const json& layout = tools.at(0)["inputSchema"]["properties"]["scenario"]["properties"]["layout"];
  EXPECT_NE(layout["properties"]["tp"]["description"].get<std::string>().find("tensor parallel"),
            std::string::npos);
  EXPECT_TRUE(layout["properties"]["overlap"]["properties"].contains("pp"));
}

TEST_F(Dialogue, PredictTellsFiguresTheirIntervalAndWhatTheyRestOn) {
  const json answer = answer_of("predict", {{"scenario", scenario()}, {"set", {{"layout.tp", 2}}}});
  EXPECT_LT(answer.at("step_time_low_s"), answer.at("step_time_s"));
  EXPECT_GT(answer.at("step_time_high_s"), answer.at("step_time_s"));
  EXPECT_TRUE(answer.at("fits").get<bool>());
  for (const char* key : {"provenance", "recorded_runs", "unproven", "waterfall_s", "mfu"}) {
    EXPECT_TRUE(answer.contains(key)) << key;
  }
  EXPECT_FALSE(answer.contains("rank_classes"));
  json whole = scenario();
  whole["layout"] = {{"tp", 2}};
  EXPECT_EQ(answer_of("predict", {{"scenario", whole}}), answer);
  const json slower =
      answer_of("predict", {{"scenario", whole}, {"what_if", json::array({"memory=-50%"})}});
  EXPECT_GT(slower.at("step_time_s"), answer.at("step_time_s"));
}

TEST_F(Dialogue, PlanAndWhyNotSearchTheOpenKeys) {
  json small = scenario();
  small["cluster"] = "dgx-h100";
  small["layout"] = {{"pp", 1}, {"zero", 1}, {"recompute", "none"}};
  const json plan = answer_of("plan", {{"scenario", small}, {"places", 2}});
  EXPECT_LE(plan.at("plans").size(), 2u);
  ASSERT_FALSE(plan.at("plans").empty());
  EXPECT_EQ(plan.at("plans").at(0).at("layout").at("pp"), 1);
  const json why =
      answer_of("why_not", {{"scenario", small}, {"layout", {{"tp", 8}}}, {"places", 1}});
  EXPECT_EQ(why.at("why_not").at(0).at("asked"), "tp=8");
  EXPECT_TRUE(why.at("why_not").at(0).contains("reason"));
  const json illegal =
      answer_of("why_not", {{"scenario", small}, {"layout", {{"tp", 3}}}, {"places", 1}});
  EXPECT_FALSE(illegal.at("why_not").at(0).at("rules").empty());
}

TEST_F(Dialogue, CompareCheckExplainAndList) {
  json other = scenario();
  other["layout"] = {{"tp", 4}};
  const json compared = answer_of(
      "compare",
      {{"scenarios",
        {{{"name", "plain"}, {"scenario", scenario()}}, {{"name", "cut"}, {"scenario", other}}}}});
  EXPECT_EQ(compared.at("plans").size(), 2u);
  const json checked = answer_of("check", {{"suite", "megatron-core-h100"}, {"largest_errors", 2}});
  EXPECT_EQ(checked.at("largest_errors").size(), 2u);
  EXPECT_TRUE(checked.at("summary").contains("all"));
  const json key = answer_of("explain_key", {{"key", "layout.tp"}});
  EXPECT_EQ(key.at("key"), "layout.tp");
  EXPECT_EQ(answer_of("explain_key", {{"key", "tp"}}), key);
  EXPECT_TRUE(answer_of("list", {{"topic", "clusters"}}).contains("names"));
  EXPECT_TRUE(answer_of("list", {{"topic", "models"}, {"filter", "llama-3.1"}}).is_array());
  EXPECT_TRUE(answer_of("list", {{"topic", "suites"}}).contains("names"));
}

TEST_F(Dialogue, WrongArgumentsAreNamedWithTheirRemedy) {
  EXPECT_EQ(error_of("predict", json::object()),
            "scenario: is required ({\"model\": ..., \"cluster\": ..., \"training\": {...}})\n");
  EXPECT_NE(
      error_of("predict", {{"scenario", scenario()}, {"sett", 1}}).find("did you mean 'set'?"),
      std::string::npos);
  EXPECT_NE(error_of("predict", {{"scenario", scenario()}, {"set", {{"layout.tp", 3}}}})
                .find("layout.tp"),
            std::string::npos);
  EXPECT_NE(error_of("explain_key", {{"key", "layout.tpp"}}).find("did you mean"),
            std::string::npos);
  EXPECT_NE(error_of("plan", {{"scenario", scenario()}, {"places", 99}}).find("from 1 to 10"),
            std::string::npos);
  EXPECT_NE(error_of("why_not", {{"scenario", scenario()}}).find("layout"), std::string::npos);
  EXPECT_NE(error_of("compare", {{"scenarios", 3}}).find("2 to 16"), std::string::npos);
  EXPECT_NE(error_of("check", {{"suite", "none"}}).find("there is no suite"), std::string::npos);
  EXPECT_NE(error_of("list", {{"topic", "recipes"}}).find("models"), std::string::npos);
  EXPECT_NE(error_of("predict", json::array()).find("is no object"), std::string::npos);
}

TEST_F(Dialogue, ACallThatTakesTooLongEnds) {
  const McpServer hasty = server(Seconds(1e-9));
  const json request = {{"jsonrpc", "2.0"},
                        {"id", 1},
                        {"method", "tools/call"},
                        {"params", {{"name", "check"}, {"arguments", {{"suite", "llm-foundry"}}}}}};
  const json result = read(hasty.answer(request.dump())).at("result");
  EXPECT_TRUE(result.at("isError").get<bool>());
  EXPECT_NE(result.at("content").at(0).at("text").get<std::string>().find("took longer"),
            std::string::npos);
}

TEST_F(Dialogue, EveryTopicThatIsNamedCanBeListed) {
  for (const char* topic :
       {"models", "clusters", "gpus", "schedules", "keys", "figures", "documents", "suites"}) {
    const json listed = answer_of("list", {{"topic", topic}});
    const json& names = listed.is_object() ? listed.at("names") : listed;
    EXPECT_GT(names.size(), 3u) << topic;
  }
  EXPECT_EQ(answer_of("list", {{"topic", "figures"}}).at("names").at(0).get<std::string>(),
            "step_time_s");
}

// Whatever a tool throws is the answer to its call.
TEST_F(Dialogue, NoToolEndsTheServer) {
  const auto schema = [](const ToolContext&) { return Json::object(); };
  const std::vector<McpTool> tools{
      {"asserts", "", "", schema,
       [](const ToolContext&, const Json&) -> Result<Json> {
         STEPCAST_ASSERT(false, "a mistake");
         return Json();
       }},
      {"fills", "", "", schema,
       [](const ToolContext&, const Json&) -> Result<Json> { throw std::bad_alloc(); }},
      {"stops", "", "", schema,
       [](const ToolContext&, const Json&) -> Result<Json> { throw Stopped(); }}};
  const McpServer broken({*api::Data::open(source_folder())}, "0.1.0", tools);
  const auto text_of = [&](const char* name) {
    const json request{
        {"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/call"}, {"params", {{"name", name}}}};
    const json result = read(broken.answer(request.dump())).at("result");
    EXPECT_TRUE(result.at("isError").get<bool>());
    return result.at("content").at(0).at("text").get<std::string>();
  };
  EXPECT_NE(text_of("asserts").find("a mistake"), std::string::npos);
  EXPECT_NE(text_of("fills").find("no memory is left"), std::string::npos);
  EXPECT_NE(text_of("stops").find("took longer"), std::string::npos);
}

TEST_F(Dialogue, MessagesThatAreNoRequestsGetTheErrorsOfJsonRpc) {
  const auto code = [&](const std::string& line) {
    return read(server_.answer(line)).at("error").at("code").get<int>();
  };
  EXPECT_EQ(code("{"), -32700);
  EXPECT_EQ(code("\xff\xfe"), -32700);
  EXPECT_EQ(code(std::string(100'000, '[')), -32700);
  EXPECT_EQ(code("[]"), -32600);
  EXPECT_EQ(code("{}"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":{},"method":"ping"})"), -32600);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})"), -32601);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})"), -32602);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})"),
            -32602);
  EXPECT_FALSE(server_.answer(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  EXPECT_EQ(json::parse(server_.too_long()).at("error").at("code"), -32600);
}

// A client that is broken or hostile: whole messages with bytes replaced, taken out and doubled.
TEST_F(Dialogue, NoMessageEndsTheServer) {
  const std::string whole =
      json{{"jsonrpc", "2.0"},
           {"id", 1},
           {"method", "tools/call"},
           {"params", {{"name", "predict"}, {"arguments", {{"scenario", scenario()}}}}}}
          .dump();
  std::minstd_rand random(1);
  int answered = 0;
  for (int i = 0; i < 400; ++i) {
    std::string message = whole;
    const auto changes = 1 + random() % 3;
    for (unsigned c = 0; c < changes; ++c) {
      const std::size_t at = random() % message.size();
      const unsigned way = random() % 3;
      if (way == 0) message[at] = static_cast<char>(random() % 256);
      if (way == 1) message.erase(at, 1 + random() % 8);
      if (way == 2) message.insert(at, message.substr(at, random() % 16));
    }
    const auto answer = server_.answer(message);
    if (!answer) continue;
    ++answered;
    EXPECT_TRUE(json::parse(*answer).contains("id")) << message;
  }
  EXPECT_GT(answered, 300);
}

}  // namespace
}  // namespace stepcast
