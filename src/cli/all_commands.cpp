// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string_view>

#include "cli/commands.h"

namespace stepcast::cli {

namespace {

struct KnownCommand {
  std::string_view name;
  Command (*add)(CommandLine program);  // null: it comes with more below it or beside it
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
                                      {"show", nullptr},
                                      {"topology", nullptr},
                                      {"serve", add_serve},
                                      {"doctor", add_doctor},
                                      {"completion", nullptr},
                                      {"man", nullptr}};

const KnownCommand* find_command(std::string_view word) {
  const auto* found = std::ranges::find(kCommands, word, &KnownCommand::name);
  return found == std::end(kCommands) ? nullptr : found;
}

}  // namespace

std::vector<Command> add_commands(CommandLine program) {
  std::vector<Command> out;
  const auto add = [&](const std::vector<Command>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  for (const auto& [name, add_command] : kCommands) {
    if (add_command != nullptr) out.push_back(add_command(program));
    if (name == "show") add(add_show(program));
    if (name == "topology") add(add_topology(program));
    if (name == "completion") add(add_completion(program));  // and the manual
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
