// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "cli/commands.h"
#include "core/atomic_file.h"
#include "core/carried_files.h"
#include "core/input_lines.h"
#include "core/read_roots.h"
#include "serve/mcp_session.h"

namespace stepcast::cli {
namespace {

struct ServeFlags {
  bool mcp = false;
  std::vector<std::string> roots;
  double time_limit_s = 30;
  std::string memory_limit;
  int threads = 0;
  std::string data;
};

// Until the client closes the input, or no longer reads.
int serve(const McpServer& server) {
  InputLines lines(STDIN_FILENO, kLongestMessage);
  {
    McpSession session(
        server, [](const std::string& answer) { return write_all(STDOUT_FILENO, answer + "\n"); });
    std::string line;
    bool is_read = true;
    while (is_read) {
      const auto kind = lines.next(line);
      if (kind == InputLines::Kind::kEnd) break;
      if (kind == InputLines::Kind::kTooLong) {
        is_read = session.take_too_long();
      } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
        is_read = session.take(line);
      }
    }
  }
  if (lines.failed() == 0) return kOk;
  return report_errors(
      {{ErrorCode::kIo, fmt::format("cannot be read: {}", std::strerror(lines.failed())),
        "standard input", "", ""}});
}

int run_serve(const ServeFlags& flags) {
  if (!flags.mcp) {
    return report_errors({{ErrorCode::kMissingKey, "names no protocol", "", "serve", "--mcp"}});
  }
  const auto memory_limit = memory_limit_of(flags.memory_limit);
  if (!memory_limit) return report_errors(memory_limit.error());
  const auto found = find_data(flags.data);
  if (!found) return report_errors(found.error());
  auto data = api::Data::open(found->root);
  if (!data) return report_errors(data.error());
  std::vector<std::string> folders = flags.roots;
  for (const std::string& folder : {found->folders.models, found->folders.topologies,
                                    found->folders.profiles, found->suites, found->prices.folder}) {
    if (!is_carried(folder)) folders.push_back(folder);
  }
  if (const auto bound = bind_reads_below(folders); !bound) return report_errors(bound.error());
  return serve(McpServer(
      {std::move(*data), Seconds(flags.time_limit_s), threads_of(flags.threads), *memory_limit},
      STEPCAST_VERSION));
}

}  // namespace

Command add_serve(CommandLine program) {
  auto flags = std::make_shared<ServeFlags>();
  CommandLine app = program.add_command("serve", "answer agents over standard input and output");
  app.footer(
      "Example: stepcast serve --mcp\n"
      "An agent's client starts it: {\"mcpServers\": {\"stepcast\": {\"command\": \"stepcast\", "
      "\"args\": [\"serve\", \"--mcp\"]}}}");
  app.add_switch("--mcp", flags->mcp, "speak the Model Context Protocol, a message a line");
  app.add("--root", flags->roots,
          "a folder whose files requests may name; without it they read what ships alone")
      .type_name("DIR")
      .one_word();
  app.add("--time-limit", flags->time_limit_s, "end a call after S seconds")
      .type_name("S")
      .within(0.1, 1e6)
      .shows_default();
  add_memory_limit_flag(app, flags->memory_limit);
  add_threads_flag(app, flags->threads);
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_serve(*flags); }};
}

}  // namespace stepcast::cli
