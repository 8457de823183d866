// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/text/escape.h"

namespace stepcast::cli {
namespace {

void collect(const std::string& before, const DescribedCommand& command,
             std::vector<NamedCommand>& out) {
  for (const DescribedCommand& below : command.commands) {
    const std::string words = before.empty() ? below.name : before + " " + below.name;
    out.push_back({words, &below});
    collect(words, below, out);
  }
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> names_of(const std::vector<DescribedFlag>& flags) {
  std::vector<std::string> out;
  for (const DescribedFlag& flag : flags) {
    out.insert(out.end(), flag.names.begin(), flag.names.end());
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<DescribedCommand>& commands) {
  std::vector<std::string> out;
  for (const DescribedCommand& command : commands) out.push_back(command.name);
  return out;
}

// The topic of `stepcast show` that lists what a flag's value may be ("models" of --model); ""
// where there is none.
std::string topic_of_values(const DescribedFlag& flag) {
  for (const std::string& name : flag.names) {
    if (name == "--model") return "models";
    if (name == "--cluster" || name == "--clusters") return "clusters";
  }
  return "";
}

bool takes_file(const DescribedFlag& flag) {
  for (const char* word : {"FILE", "PATH", "DIR", "PROFILE", "SCENARIO", "JSON"}) {
    if (flag.value.find(word) != std::string::npos) return true;
  }
  return false;
}

// The line of bash that completes a flag's value; "" where anything may stand.
std::string bash_values(const DescribedFlag& flag) {
  if (!flag.choices.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", joined(flag.choices));
  }
  if (const std::string topic = topic_of_values(flag); !topic.empty()) {
    return fmt::format("COMPREPLY=($(compgen -f -W \"$(_stepcast_names {})\" -- \"$cur\"))", topic);
  }
  return takes_file(flag) ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : "COMPREPLY=()";
}

std::string bash_case(const std::string& words, const DescribedCommand& command) {
  std::string out = fmt::format("    \"{}\")\n      case \"$before\" in\n", words);
  for (const DescribedFlag& flag : command.flags) {
    if (flag.value.empty()) continue;
    out += fmt::format("        {}) {}; return ;;\n", joined(flag.names, "|"), bash_values(flag));
  }
  std::vector<std::string> all = names_of(command.flags);
  for (const std::string& name : names_of(command.commands)) all.push_back(name);
  out += fmt::format("      esac\n      COMPREPLY=($(compgen {}-W '{}' -- \"$cur\"))\n      ;;\n",
                     command.commands.empty() ? "-f " : "", joined(all));
  return out;
}

// Inside single quotes of zsh, between brackets or behind a colon.
std::string zsh_words(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
      continue;
    }
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string zsh_action(const DescribedFlag& flag) {
  if (!flag.choices.empty()) return fmt::format("({})", joined(flag.choices));
  if (const std::string topic = topic_of_values(flag); !topic.empty()) {
    return fmt::format("_stepcast_names {}", topic);
  }
  return takes_file(flag) ? "_files" : " ";
}

std::string zsh_arguments(const DescribedCommand& command) {
  std::string out = "_arguments";
  for (const DescribedFlag& flag : command.flags) {
    const std::string value =
        flag.value.empty() ? "" : fmt::format(":{}:{}", zsh_words(flag.value), zsh_action(flag));
    for (const std::string& name : flag.names) {
      out += fmt::format(" \\\n        '*{}[{}]{}'", name, zsh_words(flag.help), value);
    }
  }
  return out + " \\\n        '*:file:_files'";
}

// The arguments of a command, or the choice among those below it.
std::string zsh_body(const DescribedCommand& command, const std::string& function) {
  if (command.commands.empty()) return "  " + zsh_arguments(command) + "\n";
  std::string out = "  local context state state_descr line\n  typeset -A opt_args\n";
  out += "  _arguments -C '1: :->command' '*:: :->words'\n  case $state in\n    command)\n";
  out += "      local -a commands=(\n";
  for (const DescribedCommand& below : command.commands) {
    out += fmt::format("        '{}:{}'\n", below.name, zsh_words(below.help));
  }
  out +=
      "      )\n      _describe command commands\n      ;;\n    words)\n      case $line[1] in\n";
  for (const DescribedCommand& below : command.commands) {
    out += fmt::format("        {}) {}_{} ;;\n", below.name, function, below.name);
  }
  return out + "      esac\n      ;;\n  esac\n";
}

void zsh_functions(const DescribedCommand& command, const std::string& function, std::string& out) {
  for (const DescribedCommand& below : command.commands) {
    zsh_functions(below, function + "_" + below.name, out);
  }
  out += fmt::format("{}() {{\n{}}}\n\n", function, zsh_body(command, function));
}

std::string fish_words(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string fish_line(const std::string& condition, const DescribedFlag& flag) {
  std::string out = "complete -c stepcast -n '" + condition + "'";
  for (const std::string& name : flag.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!flag.value.empty()) {
    const std::string topic = topic_of_values(flag);
    if (!flag.choices.empty()) {
      out += fmt::format(" -x -a '{}'", joined(flag.choices));
    } else if (!topic.empty()) {
      out += fmt::format(" -r -a '(__stepcast_names {})'", topic);
    } else {
      out += takes_file(flag) ? " -r -F" : " -x";
    }
  }
  return out + fmt::format(" -d '{}'\n", fish_words(flag.help));
}

void fish_lines(const DescribedCommand& command, const std::string& condition, std::string& out) {
  const std::string below_it = joined(names_of(command.commands));
  for (const DescribedCommand& below : command.commands) {
    const std::string open = (condition.empty() ? "" : condition + "; and ") +
                             fmt::format("not __fish_seen_subcommand_from {}", below_it);
    out += fmt::format("complete -c stepcast -f -n '{}' -a {} -d '{}'\n", open, below.name,
                       fish_words(below.help));
  }
  for (const DescribedFlag& flag : command.flags) {
    if (!condition.empty()) out += fish_line(condition, flag);
  }
  for (const DescribedCommand& below : command.commands) {
    fish_lines(below,
               (condition.empty() ? "" : condition + "; and ") +
                   fmt::format("__fish_seen_subcommand_from {}", below.name),
               out);
  }
}

Written bash_completion(const DescribedCommand& program) {
  const std::vector<NamedCommand> commands = all_commands(program);
  // A script finds the command among a line's words by them.
  std::vector<std::string> paths;
  for (const NamedCommand& one : commands) paths.push_back("\"" + one.words + "\"");
  std::string out =
      "# Completes the words of stepcast in bash: source <(stepcast completion bash)\n"
      "_stepcast_names() {\n"
      "  \"${COMP_WORDS[0]}\" show \"$1\" --format csv 2>/dev/null | tail -n +2 | cut -d , -f 1\n"
      "}\n"
      "_stepcast() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local command=\"\" word at\n"
      "  for ((at = 1; at < COMP_CWORD; ++at)); do\n"
      "    word=\"${command:+$command }${COMP_WORDS[at]}\"\n"
      "    case \"$word\" in\n";
  out += fmt::format("      {}) command=\"$word\" ;;\n    esac\n  done\n", joined(paths, "|"));
  out += "  case \"$command\" in\n";
  out += bash_case("", program);
  for (const NamedCommand& one : commands) out += bash_case(one.words, *one.command);
  out += "  esac\n}\ncomplete -o filenames -F _stepcast stepcast\n";
  return terminal_lines(out);
}

Written zsh_completion(const DescribedCommand& program) {
  std::string out =
      "#compdef stepcast\n"
      "# Completes the words of stepcast in zsh: put it where $fpath looks, as _stepcast.\n"
      "_stepcast_names() {\n"
      "  local -a names=(${(f)\"$(stepcast show $1 --format csv 2>/dev/null | tail -n +2 | "
      "cut -d , -f 1)\"})\n"
      "  compadd -a names\n"
      "  _files\n"
      "}\n\n";
  zsh_functions(program, "_stepcast", out);
  return terminal_lines(out + "_stepcast \"$@\"\n");
}

Written fish_completion(const DescribedCommand& program) {
  std::string out =
      "# Completes the words of stepcast in fish: stepcast completion fish | source\n"
      "function __stepcast_names\n"
      "  stepcast show $argv[1] --format csv 2>/dev/null | tail -n +2 | cut -d , -f 1\n"
      "end\n";
  fish_lines(program, "", out);
  return terminal_lines(out);
}

}  // namespace

std::vector<NamedCommand> all_commands(const DescribedCommand& program) {
  std::vector<NamedCommand> out;
  collect("", program, out);
  return out;
}

std::vector<Command> add_completion(CommandLine program) {
  using Writer = Written (*)(const DescribedCommand&);
  CommandLine completion =
      program.add_command("completion", "print what lets a shell complete these words");
  completion.footer("Example: source <(stepcast completion bash)");
  std::vector<Command> out;
  const std::pair<const char*, Writer> shells[] = {
      {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
  for (const auto& [shell, writer] : shells) {
    const Writer write = writer;  // a binding cannot be captured
    CommandLine app = completion.add_command(shell, fmt::format("a script for {}", shell));
    out.push_back({app, [program, write] { return print(write(program.described())); }});
  }
  CommandLine man = program.add_command("man", "print the manual page, as man reads it");
  man.footer("Example: stepcast man > ~/.local/share/man/man1/stepcast.1");
  out.push_back(
      {man, [program] { return print(manual_page(program.described(), STEPCAST_VERSION)); }});
  return out;
}

}  // namespace stepcast::cli
