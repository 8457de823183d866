// SPDX-License-Identifier: Apache-2.0
// The commands of the npm package: those that need neither ranks nor a library that Debian's
// emscripten lacks. The others are there by name, and say so.
#include <fmt/format.h>

#include <span>
#include <string>

#include "cli/check_acceptance.h"
#include "cli/commands.h"
#include "cli/plan_export.h"
#include "core/json_tree.h"

namespace stepcast::cli {
namespace {

struct LeftOut {
  const char* name;
  const char* needs;
};
constexpr LeftOut kLeftOut[] = {
    {"calibrate", "starts ranks"},
    {"validate", "starts ranks"},
    {"diagnose", "reads compressed traces"},
    {"replay", "reads graphs with readers of YAML"},
    {"export", "writes YAML and TOML"},
    {"import", "reads YAML and TOML"},
    {"gate", "reads the logs of training programs"},
    {"doctor", "looks at the machine's libraries"},
};

Command add_left_out(CommandLine program, const LeftOut& one) {
  const std::string why = fmt::format("{}, which WebAssembly does not", one.needs);
  CommandLine app = program.add_command(one.name, "not in this package: " + why);
  return {
      app,
      [one] {
        return report_errors(
            {{ErrorCode::kNotSupported,
              fmt::format("is not in this package: it {}, which WebAssembly does not", one.needs),
              "", one.name, "install the program: docs/web.md"}});
      },
      true};
}

}  // namespace

std::vector<Command> add_commands(CommandLine program) {
  std::vector<Command> out{add_predict(program), add_plan(program), add_compare(program),
                           add_check(program)};
  for (const auto& more : {add_show(program), add_topology(program)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  out.push_back(add_serve(program));
  for (const Command& more : add_completion(program)) out.push_back(more);
  for (const LeftOut& one : kLeftOut) out.push_back(add_left_out(program, one));
  return out;
}

std::vector<Command> add_commands_for(CommandLine program, std::span<char* const>) {
  return add_commands(program);
}

// Thresholds of acceptance are judged by readers that are left out: their files are then refused as
// any other that holds no suite.
bool is_acceptance(const std::vector<std::string>&) { return false; }
int check_acceptance(const AcceptanceFlags&, const DataFolders&, Output&) { return kInternalError; }

// Without writers of launch files a plan prefers none of the layouts that a forecast does not tell
// apart.
Result<LaunchNote> prefer_exportable(const Planner&, const SortedJson&, const DataFolders&,
                                     SearchResult&) {
  return LaunchNote{};
}

}  // namespace stepcast::cli
