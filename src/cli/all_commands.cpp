// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace stepcast::cli {

std::vector<Command> add_commands(CommandLine program) {
  std::vector<Command> out{add_predict(program),  add_plan(program),      add_compare(program),
                           add_check(program),    add_calibrate(program), add_validate(program),
                           add_diagnose(program), add_replay(program),    add_export(program),
                           add_import(program),   add_gate(program)};
  for (const auto& more : {add_show(program), add_topology(program)}) {
    out.insert(out.end(), more.begin(), more.end());
  }
  out.push_back(add_serve(program));
  out.push_back(add_doctor(program));
  for (const Command& more : add_completion(program)) out.push_back(more);
  return out;
}

}  // namespace stepcast::cli
