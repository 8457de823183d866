// SPDX-License-Identifier: Apache-2.0
#include "recipes/launch_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "recipes/shell_script.h"

namespace stepcast {
namespace {

using Command = std::vector<std::string>;
using Marks = std::function<std::int64_t(const Command&)>;

struct Candidates {
  const Command* best = nullptr;
  std::vector<const Command*> all;
};

Candidates candidates_in(const ShellScript& script, const Marks& marks) {
  Candidates out;
  std::int64_t most = 0;
  for (const Command& words : script.commands) {
    const std::int64_t count = marks(words);
    if (count == 0) continue;
    out.all.push_back(&words);
    if (count < most) continue;
    most = count;
    out.best = &words;
  }
  return out;
}

std::string listed(std::vector<std::string> texts) {
  constexpr std::size_t kMost = 6;
  const std::size_t more = texts.size() - std::min(texts.size(), kMost);
  texts.resize(std::min(texts.size(), kMost));
  return fmt::format("{}{}", fmt::join(texts, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

void tell_undecided(const ShellScript& script, const Command& best, const ImportInput& input,
                    const Marks& marks, ImportedScenario& out) {
  if (script.undecided.empty()) return;
  const ShellScript without = read_shell(input.text, input.variables, Undecided::kLeaveOut);
  const Candidates found = candidates_in(without, marks);
  const auto settings = undecided_settings(best, found.best != nullptr ? *found.best : Command{});
  std::string text = fmt::format("not decided, so that each branch is read and the last counts: {}",
                                 listed(script.undecided));
  if (found.best == nullptr) {
    text += "; the command itself hangs on it";
  } else if (settings.empty()) {
    text += "; no setting hangs on it";
  } else {
    text += "; settings that hang on it: " + listed(settings);
  }
  out.warnings.push_back(text + " (--variable NAME=VALUE decides)");
}

}  // namespace

std::optional<LaunchCommand> find_launch_command(const ImportInput& input, const Marks& marks,
                                                 const Error& missing, ImportedScenario& out) {
  const ShellScript script = read_shell(input.text, input.variables);
  if (script.too_large) {
    out.fail(ErrorCode::kBadValue, "",
             fmt::format("its variables expand to more than {} MiB", kMostExpanded >> 20),
             "a launch script, whose variables do not repeat each other");
    return std::nullopt;
  }
  const Candidates found = candidates_in(script, marks);
  if (found.best == nullptr) {
    out.fail(missing.code, missing.path, missing.message, missing.hint);
    return std::nullopt;
  }
  tell_undecided(script, *found.best, input, marks, out);
  const bool differ =
      std::ranges::any_of(found.all, [&](const Command* one) { return *one != *found.best; });
  if (differ) {
    out.warnings.push_back(
        fmt::format("{} commands have flags of the program: the last with most of them is read",
                    found.all.size()));
  }
  return LaunchCommand{*found.best, script.environment};
}

}  // namespace stepcast
