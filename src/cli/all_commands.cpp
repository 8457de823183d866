// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string_view>

#include "cli/commands.h"

namespace stepcast::cli {

namespace {

struct KnownCommand {
  std::string_view name;
  Command (*add)(CommandLine program) = nullptr;  // null: it comes with others
  std::vector<Command> (*add_with_others)(CommandLine program) = nullptr;  // below it or beside it
};
constexpr KnownCommand kCommands[] = {{"predict", add_predict},
                                      {"plan", add_plan},
                                      {"compare", add_compare},
                                      {"check", add_check},
                                      {"calibrate", add_calibrate},
                                      {"validate", add_validate},
                                      {"diagnose", add_diagnose},
                                      {"replay", add_replay},
                                      {"export", add_export},
                                      {"import", add_import},
                                      {"gate", add_gate},
                                      {"show", nullptr, add_show},
                                      {"topology", nullptr, add_topology},
                                      {"serve", add_serve},
                                      {"doctor", add_doctor},
                                      {"completion", nullptr, add_completion},
                                      {"man"}};  // beside completion

const KnownCommand* find_command(std::string_view word) {
  const auto* found = std::ranges::find(kCommands, word, &KnownCommand::name);
  return found == std::end(kCommands) ? nullptr : found;
}

}  // namespace

std::vector<Command> add_commands(CommandLine program) {
  std::vector<Command> out;
  for (const KnownCommand& known : kCommands) {
    if (known.add != nullptr) out.push_back(known.add(program));
    if (known.add_with_others == nullptr) continue;
    for (const Command& command : known.add_with_others(program)) out.push_back(command);
  }
  return out;
}

std::vector<Command> add_commands_for(CommandLine program, std::span<char* const> words) {
  const KnownCommand* first = words.empty() ? nullptr : find_command(words.front());
  const auto names_one = [](const char* word) { return find_command(word) != nullptr; };
  const bool is_alone = first != nullptr && std::ranges::count_if(words, names_one) == 1;
  if (!is_alone || first->add == nullptr) return add_commands(program);
  return {first->add(program)};
}

}  // namespace stepcast::cli
