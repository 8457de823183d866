// SPDX-License-Identifier: Apache-2.0
// The server for agents as a client starts it: lines in, lines out (tests/serve has the dialogues).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// The answers of `serve` to these lines, one message each.
std::vector<json> answers_to(const std::string& lines, std::vector<std::string> flags = {}) {
  const Folder folder;
  write_file(folder / "in", lines);
  flags.insert(flags.begin(), {"serve", "--mcp"});
  const Outcome outcome = run(flags, "<'" + folder / "in" + "' >'" + folder / "answers" + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  std::vector<json> out;
  std::istringstream stream(read_file(folder / "answers"));
  for (std::string line; std::getline(stream, line);) out.push_back(json::parse(line));
  return out;
}

std::string predict_with(const std::string& model) {
  return json{{"jsonrpc", "2.0"},
              {"id", 1},
              {"method", "tools/call"},
              {"params",
               {{"name", "predict"},
                {"arguments",
                 {{"scenario",
                   {{"model", model},
                    {"cluster", "dgx-h100"},
                    {"training", {{"global_batch", 8}, {"sequence_length", 1024}}}}}}}}}}
             .dump() +
         "\n";
}

constexpr const char* kPing = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";

TEST(Serve, AnswersEveryLineUntilTheInputEnds) {
  const auto answers = answers_to("\n" + std::string(kPing) + "nonsense\n" + kPing);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].at("result"), json::object());
  EXPECT_EQ(answers[1].at("error").at("code"), -32700);
  EXPECT_EQ(answers[2].at("id"), 2);
  EXPECT_EQ(answers_to("").size(), 0u);
  // The last line may lack its line feed.
  EXPECT_EQ(answers_to("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}").size(), 1u);
}

TEST(Serve, DropsALineThatIsTooLongAndGoesOn) {
  const auto answers = answers_to(std::string(5 << 20, 'x') + "\n" + kPing);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("error").at("code"), -32600);
  EXPECT_EQ(answers[1].at("id"), 2);
}

TEST(Serve, ReadsFilesBelowItsRootsAlone) {
  const Folder folder;
  std::filesystem::create_directory(folder / "models");
  const std::string inside = folder / "models/mine.json", outside = folder / "other.json";
  for (const std::string& file : {inside, outside}) {
    write_file(file, R"({"layers": 4, "hidden": 256, "heads": 4, "vocab": 2048,
      "max_positions": 1024, "mlp": "gelu", "norm": "layernorm", "position": "learned",
      "biases": true, "dropout": 0})");
  }
  std::filesystem::create_symlink(outside, folder / "models/link.json");
  const auto refused = [&](const std::string& model, const std::vector<std::string>& flags) {
    const json result = answers_to(predict_with(model), flags).at(0).at("result");
    const auto text = result.at("content").at(0).at("text").get<std::string>();
    if (!result.at("isError").get<bool>()) return false;
    EXPECT_TRUE(has(text, "outside the folders that may be read")) << text;
    return true;
  };
  const std::vector<std::string> root{"--root", folder / "models"};
  EXPECT_FALSE(refused(inside, root));
  EXPECT_TRUE(refused(outside, root));
  EXPECT_TRUE(refused(folder / "models/link.json", root));
  EXPECT_TRUE(refused(folder / "models/../other.json", root));
  EXPECT_TRUE(refused(inside, {}));
  EXPECT_FALSE(refused("llama-3.1-8b", {}));
}

TEST(Serve, RefusesFlagsThatMakeNoServer) {
  expect_refused(run({"serve"}));
  expect_refused(run({"serve", "--mcp", "--root", "/no/such/folder"}));
  expect_refused(run({"serve", "--mcp", "--time-limit", "0"}));
}

}  // namespace
}  // namespace stepcast::testing
