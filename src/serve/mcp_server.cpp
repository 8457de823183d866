// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <vector>

#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "core/work_limits.h"

namespace stepcast {
namespace {

// The newest revision has no handshake: a request names it.
constexpr const char* kRevision = "2026-07-28";
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
// Revisions with a handshake, the newest first.
constexpr std::array kOlder = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

// How long a client may keep a list that changes with the program alone, in milliseconds.
constexpr int kKept_ms = 3'600'000;

constexpr const char* kInstructions =
    "stepcast forecasts step time, memory and cost of training a transformer on a GPU cluster. "
    "Give a "
    "scenario (model, cluster, training, layout); keys that it leaves out have defaults, and are "
    "searched by plan. Every forecast carries an interval, says what it rests on, and names the "
    "nearest recorded runs: tell these to the user too. explain_key and list say what is accepted.";

// Codes of JSON-RPC, and of the protocol.
enum Code : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kNoMethod = -32601,
  kInvalidParams = -32602,
  kWrongRevision = -32022,
};

struct Failure {
  Code code;
  std::string message;
  Json data = nullptr;
};

std::string failed(const Json& id, const Failure& failure) {
  Json out{{"jsonrpc", "2.0"}, {"id", id}};
  out["error"] = {{"code", static_cast<int>(failure.code)}, {"message", failure.message}};
  if (!failure.data.is_null()) out["error"]["data"] = failure.data;
  return json_text(out);
}

// One request, with what its revision asks of an answer.
class Request {
 public:
  Request(const ToolContext& context, const std::string& version, const std::vector<McpTool>& tools,
          const Json& message, const std::function<bool()>& cancelled)
      : context_(context),
        version_(version),
        tools_(tools),
        message_(message),
        cancelled_(cancelled) {
    static const Json none = Json::object();
    params_ = message.contains("params") ? &message["params"] : &none;
    if (!params_->is_object() || !params_->contains("_meta")) return;
    const Json& meta = (*params_)["_meta"];
    if (meta.is_object() && meta.contains(kVersionKey)) asked_ = meta[kVersionKey];
  }

  std::string answer() const {
    if (!params_->is_object()) {
      return failed(id(), {kInvalidParams, "params must be an object"});
    }
    if (!asked_.is_null() && asked_ != kRevision) return failed(id(), wrong_revision());
    const std::string method = message_["method"].get<std::string>();
    if (method == "initialize") return done(handshake());
    if (method == "server/discover") return done(discovered());
    if (method == "ping") return done(Json::object());
    if (method == "tools/list") return done(tool_list());
    if (method == "tools/call") return call_tool();
    return failed(id(), {kNoMethod, fmt::format("there is no method '{}'", method)});
  }

 private:
  const Json& id() const { return message_["id"]; }
  bool is_newest() const { return !asked_.is_null(); }

  std::string done(Json result) const {
    if (is_newest()) result["resultType"] = "complete";
    return json_text(Json{{"jsonrpc", "2.0"}, {"id", id()}, {"result", std::move(result)}});
  }

  Failure wrong_revision() const {
    return {kWrongRevision,
            "the server speaks another revision of the protocol",
            {{"supported", Json::array({kRevision})}, {"requested", asked_}}};
  }

  Json server_info() const {
    return {{"name", "stepcast"}, {"title", "stepcast"}, {"version", version_}};
  }

  Json handshake() const {
    const auto asked = params_->find("protocolVersion");
    const bool known = asked != params_->end() && asked->is_string() &&
                       std::ranges::find(kOlder, asked->get<std::string>()) != kOlder.end();
    Json out;
    out["protocolVersion"] = known ? *asked : Json(kOlder.front());
    out["capabilities"] = {{"tools", Json::object()}};
    out["serverInfo"] = server_info();
    out["instructions"] = kInstructions;
    return out;
  }

  Json discovered() const {
    Json out;
    out["supportedVersions"] = Json::array({kRevision});
    out["capabilities"] = {{"tools", Json::object()}};
    out["serverInfo"] = server_info();
    out["instructions"] = kInstructions;
    out["ttlMs"] = kKept_ms;
    out["cacheScope"] = "public";
    return out;
  }

  Json tool_list() const {
    Json out{{"tools", Json::array()}};
    for (const McpTool& tool : tools_) {
      out["tools"].push_back({{"name", tool.name},
                              {"title", tool.title},
                              {"description", tool.description},
                              {"inputSchema", tool.schema(context_)},
                              {"annotations",
                               {{"readOnlyHint", true},
                                {"destructiveHint", false},
                                {"idempotentHint", true},
                                {"openWorldHint", false}}}});
    }
    if (is_newest()) {
      out["ttlMs"] = kKept_ms;
      out["cacheScope"] = "public";
    }
    return out;
  }

  std::string call_tool() const {
    const auto name = params_->find("name");
    if (name == params_->end() || !name->is_string()) {
      return failed(id(), {kInvalidParams, "tools/call needs the name of a tool"});
    }
    const auto tool =
        std::ranges::find_if(tools_, [&](const McpTool& one) { return *name == one.name; });
    if (tool == tools_.end()) {
      std::vector<std::string> names;
      for (const McpTool& one : tools_) names.emplace_back(one.name);
      return failed(id(), {kInvalidParams,
                           fmt::format("there is no tool '{}': use {}",
                                       name->get<std::string>().substr(0, 60), one_of(names))});
    }
    static const Json none = Json::object();
    const auto arguments = params_->find("arguments");
    const auto answer = answer_of(*tool, arguments == params_->end() ? none : *arguments);
    const std::string text = answer ? json_text(*answer) : to_string(answer.error());
    Json out;
    out["content"] = Json::array({{{"type", "text"}, {"text", text}}});
    out["isError"] = !answer;
    return done(std::move(out));
  }

  // Whatever goes wrong in a tool is the answer to this call, and no end of the server.
  Result<Json> answer_of(const McpTool& tool, const Json& arguments) const {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> limit(context_.time_limit.value());
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    const std::function<bool()> is_over = [&] {
      return Clock::now() >= end || (cancelled_ && cancelled_());
    };
    const StopScope time(is_over);
    const MemoryScope memory(context_.memory_limit);
    try {
      auto answer = tool.call(context_, arguments);
      return answer || !answer.error().empty() ? answer : failure(late());
    } catch (const Stopped&) {
      return failure(late());
    } catch (const std::bad_alloc&) {
      return failure({ErrorCode::kIo, "no memory is left", "", "", "ask for less"});
    } catch (const std::exception& error) {
      return failure({ErrorCode::kNotSupported, fmt::format("internal error: {}", error.what()), "",
                      "", "a mistake of the program: please report it with this call"});
    }
  }

  Error late() const {
    return {ErrorCode::kIllegal,
            fmt::format("the call took longer than {:.0f} s", context_.time_limit.value()), "", "",
            "ask for less, or start the server with a larger --time-limit"};
  }

  const ToolContext& context_;
  const std::string& version_;
  const std::vector<McpTool>& tools_;
  const Json& message_;
  const std::function<bool()>& cancelled_;
  const Json* params_;
  Json asked_ = nullptr;  // the revision that the request names
};

}  // namespace

std::optional<std::string> McpServer::answer(std::string_view message,
                                             const std::function<bool()>& cancelled) const {
  return answer_read(parse_ordered_json(message, ""), cancelled);
}

std::optional<std::string> McpServer::answer_read(const Result<Json>& parsed,
                                                  const std::function<bool()>& cancelled) const {
  if (!parsed) return failed(nullptr, {kParseError, to_string(parsed.error().front())});
  if (!parsed->is_object()) {
    return failed(nullptr, {kInvalidRequest, "a message is one object; batches are not supported"});
  }
  const auto id = parsed->find("id");
  const bool names_id = id != parsed->end();
  const bool good_id = names_id && (id->is_string() || id->is_number_integer());
  const auto method = parsed->find("method");
  if (method == parsed->end() || !method->is_string() ||
      parsed->value("jsonrpc", Json()) != "2.0") {
    // An answer of the client: the server has asked it nothing.
    if (good_id && (parsed->contains("result") || parsed->contains("error"))) return std::nullopt;
    return failed(good_id ? *id : Json(nullptr),
                  {kInvalidRequest, "a request has jsonrpc \"2.0\", an id and a method"});
  }
  if (!names_id) return std::nullopt;  // a notification
  if (!good_id) return failed(nullptr, {kInvalidRequest, "an id is text or a whole number"});
  return Request(context_, version_, tools_, *parsed, cancelled).answer();
}

std::string McpServer::too_long() const {
  return failed(nullptr,
                {kInvalidRequest, fmt::format("a message has at most {} bytes", kLongestMessage)});
}

}  // namespace stepcast
