// SPDX-License-Identifier: Apache-2.0
// A file that the system stops reading in the middle has not come to its end. What had been read
// until then is no result.
#include "faults/fault.h"
#include "logs/samples.h"

namespace stepcast::testing {
namespace {

using Words = std::vector<std::string>;

// Fails each read of the file, one at a time; returns how many there are.
int expect_every_read_needed(const Words& words, const std::string& file,
                             const std::string& redirection = "") {
  const Fault none("");
  const Outcome whole = run(words, redirection);
  EXPECT_EQ(whole.code, 0) << whole.error;
  int reads = 0;
  for (bool met = true; met && reads < 100;) {
    const Fault fault("read@" + file + ":" + std::to_string(reads + 1));
    const Outcome failed = run(words, redirection);
    met = !fault.met().empty();
    if (!met) break;
    ++reads;
    EXPECT_EQ(failed.code, 2) << reads << ": " << failed.error;
    EXPECT_TRUE(has(failed.error, "Input/output error")) << reads << ": " << failed.error;
  }
  return reads;
}

TEST(FailedRead, OfALogIsNotItsEnd) {
  const Folder folder;
  write_file(folder / "long.log",
             samples::kTorchtitanStart + samples::steps(samples::kTorchtitan2025, 1, 4000));
  const Words suite{"import",  folder / "long.log", "--cluster", "dgx-h100",
                    "--model", "llama-3.1-8b",      "--suite",   folder / "suite.json",
                    "--quiet"};
  // Blocks of 64 KiB, and the end.
  EXPECT_GT(expect_every_read_needed(suite, "long.log"), 5);
}

TEST(FailedRead, OfAScheduleIsNotItsEnd) {
  const Folder folder;
  std::string text = "num_ranks 1\nrank 0 {\n";
  for (int i = 0; i < 100'000; ++i) text += "a" + std::to_string(i) + ": calc 2000\n";
  write_file(folder / "long.goal", text + "}\n");
  EXPECT_GT(expect_every_read_needed(
                {"replay", folder / "long.goal", "--cluster", "dgx-h100", "--quiet"}, "long.goal"),
            2);
}

TEST(FailedRead, OfRequestsOfAnAgentIsAnError) {
  const Folder folder;
  std::string lines;
  for (int i = 0; i < 5000; ++i)
    lines += R"({"jsonrpc":"2.0","id":1,"method":"ping"})"
             "\n";
  write_file(folder / "requests.jsonl", lines);
  EXPECT_GT(expect_every_read_needed({"serve", "--mcp"}, "requests.jsonl",
                                     "<'" + folder / "requests.jsonl" + "'"),
            2);
}

}  // namespace
}  // namespace stepcast::testing
