// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <system_error>

#include "cli/commands.h"
#include "cli/flag_words.h"
#include "cli/output.h"
#include "core/out_of_memory.h"
#include "core/text/escape.h"
#include "report/screen.h"
#include "shipped/carry_data.h"

namespace stepcast::cli {
namespace {

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out.push_back(command->get_name());
  }
  return out;
}

// Lists what no option took: unknown flags with their nearest match, or words too many.
Errors leftovers(const CLI::App& app) {
  Errors errors;
  for (const std::string& word : app.remaining()) {
    if (word.starts_with("-") && word.size() > 1) {
      const std::string flag = word.substr(0, word.find('='));
      const std::string ours = flag_of_others(flag);
      const std::string near = ours.empty() ? did_you_mean(flag, flag_names(app)) : ours;
      errors.push_back(
          {ErrorCode::kUnknownKey, "is not a known flag", "", flag,
           near.empty() ? fmt::format("see stepcast {} --help", app.get_name()) : near});
    } else if (errors.empty()) {
      errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' is one word too many", word), "",
                        app.get_name(), fmt::format("see stepcast {} --help", app.get_name())});
    }
  }
  return errors;
}

// The innermost command that the words name.
const CLI::App& reached(const CLI::App& program) {
  const CLI::App* at = &program;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

Written help_of(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  return terminal_lines(command.help(above == nullptr ? "" : command_words(*above)));
}

// "stepcast help predict" is "stepcast predict --help". The flag library wants the last word first.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run_command(const CLI::App& program, const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    const CLI::App& app = command.line.app();
    if (!app.parsed()) continue;
    if (const Errors errors = leftovers(app); !errors.empty() && !command.takes_any_words) {
      return report_errors(errors);
    }
    return command.run();
  }
  // A command that was begun and not ended ("stepcast show"), or none at all.
  const CLI::App* at = &reached(program);
  const auto known = command_names(*at);
  const auto words = at->remaining();
  if (words.empty()) {
    return report_errors({{ErrorCode::kMissingKey, "a command is missing", "", at->get_name(),
                           "one of " + one_of(known)}});
  }
  const std::string near = did_you_mean(words.front(), known);
  return report_errors({{ErrorCode::kBadValue, fmt::format("'{}' is not a command", words.front()),
                         "", at->get_name(), near.empty() ? "one of " + one_of(known) : near}});
}

int run(int argc, char** argv) {
  // A closed pipe is then an error of write, reported as any other.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that grows beyond a limit
  // A parent may have left it ignored, which would hide how ranks end.
  std::signal(SIGCHLD, SIG_DFL);
  CLI::App program(
      "Forecasts the time and memory of one training step of a transformer on a GPU "
      "cluster.",
      "stepcast");
  program.set_version_flag("--version", "stepcast " STEPCAST_VERSION);
  program.footer(
      "Example: stepcast predict --model llama-3.1-70b --cluster dgx-h100x8 "
      "--global-batch 512 --tp 8 --pp 4\nEach command has its own --help, which `stepcast help "
      "COMMAND` prints too.");
  program.allow_extras();
  const CommandLine line(program);
  const std::vector<Command> commands =
      add_commands_for(line, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0));
  try {
    program.parse(words_of(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return print(fitted_to_screen(help_of(reached(program)), screen_width()));
  } catch (const CLI::CallForVersion&) {
    return print("stepcast " STEPCAST_VERSION "\n");
  } catch (const CLI::ParseError& error) {
    return report_errors({error_of(error, reached(program))});
  }
  return run_command(program, commands);
}

}  // namespace
}  // namespace stepcast::cli

// A refusal of the machine is no error of the program (docs/design/001-errors-as-values.md).
int main(int argc, char** argv) {
  // A search makes and drops large tables thousands of times. Memory that went back to the system
  // each time would cost a sixth of it.
#ifdef __GLIBC__
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
  stepcast::carry_shipped_data();
  stepcast::end_without_memory(stepcast::cli::tell_out_of_memory, stepcast::cli::kUsageError);
  try {
    return stepcast::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    stepcast::cli::tell_out_of_memory();
    return stepcast::cli::kUsageError;
  } catch (const std::system_error& error) {
    // The library of C++ says no more of a thread that cannot be started.
    const bool of_thread = error.code() == std::errc::resource_unavailable_try_again;
    stepcast::cli::tell_line(
        fmt::format("error: {}{}", of_thread ? "no thread can be started: " : "", error.what()));
    return stepcast::cli::kUsageError;
  } catch (const std::exception& error) {
    stepcast::cli::tell_line(fmt::format("internal error: {}", error.what()));
  } catch (...) {
    stepcast::cli::tell("internal error\n");
  }
  return stepcast::cli::kInternalError;
}
