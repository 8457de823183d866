// SPDX-License-Identifier: Apache-2.0
#include "launch/mpi_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace stepcast {
namespace {

constexpr const char* kUserArguments = "STEPCAST_MPIRUN_ARGS";
// Open MPI 4.1 starts with two files of 4 MiB that ranks share (PMIx's gds/ds21), and small ones:
// 8.1 MiB for 2 ranks and for 4. Without room for them no rank starts, and nothing says why.
constexpr std::uintmax_t kSessionBytes = std::uintmax_t{9} << 20;

using Words = std::vector<std::string>;

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::string value_of(const Words& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (name_in(entry) == name && entry.size() > name.size()) return entry.substr(name.size() + 1);
  }
  return "";
}

void set(Words& environment, const std::string& entry) {
  std::erase_if(environment, [&](const auto& other) { return name_in(other) == name_in(entry); });
  environment.push_back(entry);
}

void set_default(Words& environment, const std::string& entry) {
  const auto same = [&](const auto& other) { return name_in(other) == name_in(entry); };
  if (std::none_of(environment.begin(), environment.end(), same)) environment.push_back(entry);
}

std::optional<std::string> on_path(const std::string& program, const std::string& folders) {
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = folders.substr(begin, end - begin) + "/" + program;
    if (end > begin && ::access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return std::nullopt;
}

// Open MPI takes its options with one dash or two.
bool says(const Words& user, std::initializer_list<std::string_view> options) {
  return std::any_of(user.begin(), user.end(), [&](const std::string& word) {
    const auto dashes = std::min(word.find_first_not_of('-'), word.size());
    return dashes > 0 && dashes <= 2 &&
           std::find(options.begin(), options.end(), word.substr(dashes)) != options.end();
  });
}

Errors without_room(const RankProgram& program) {
  std::string folder = program.session_folder;
  if (folder.empty()) folder = value_of(program.inherited, "TMPDIR");
  if (folder.empty()) folder = "/tmp";
  std::error_code unknown;
  const auto room = std::filesystem::space(folder, unknown);
  if (unknown || room.available >= kSessionBytes) return {};
  return {{ErrorCode::kIo,
           fmt::format("has room for {} KiB, and Open MPI keeps {} there while ranks run",
                       room.available >> 10, kSessionBytes >> 10),
           folder, "", "free some, or set TMPDIR to a folder with more"}};
}

Errors wrong(const RankProgram& program) {
  Errors errors = program.alone ? Errors{} : without_room(program);
  if (program.ranks < 1) {
    errors.push_back({ErrorCode::kBadValue, fmt::format("{} ranks cannot be run", program.ranks),
                      "", "", "at least 1"});
  }
  if (::access(program.program.c_str(), X_OK) != 0) {
    errors.push_back({ErrorCode::kNotFound,
                      "the program that runs the ranks is not here, or may "
                      "not be executed",
                      program.program, "",
                      "it stands beside stepcast: scripts/build.sh programs builds both"});
  }
  if (!program.working_folder.empty() &&
      ::access(program.working_folder.c_str(), R_OK | X_OK) != 0) {
    errors.push_back({ErrorCode::kNotFound, "the folder to run in cannot be entered",
                      program.working_folder, "", ""});
  }
  return errors;
}

Words options(const RankProgram& program, const Words& user, int cores, bool root) {
  Words out{"--tag-output"};
  if (root) out.push_back("--allow-run-as-root");
  const bool enough = program.ranks <= cores;
  if (!enough && !says(user, {"oversubscribe", "nooversubscribe", "map-by"})) {
    out.push_back("--oversubscribe");
  }
  if (!says(user, {"bind-to", "bind-to-core", "bind-to-socket", "cpu-set", "cpu-list", "rf",
                   "rankfile"})) {
    out.insert(out.end(), {"--bind-to", program.bind && enough ? "core" : "none"});
  }
  for (const std::string& entry : program.added) {
    out.insert(out.end(), {"-x", std::string(name_in(entry))});
  }
  out.insert(out.end(), user.begin(), user.end());
  if (!program.working_folder.empty()) {
    out.insert(out.end(), {"--wdir", program.working_folder});
  }
  out.insert(out.end(), {"-np", std::to_string(program.ranks),
                         std::filesystem::absolute(program.program).string()});
  return out;
}

// The setting holds for all machines of the launch, and this folder is on this one alone. (Ranks
// warn where Open MPI's setting for one machine is given.)
void set_session_folder(const RankProgram& program, const Words& user, Words& environment) {
  const bool elsewhere =
      says(user, {"H", "host", "hostfile", "machinefile", "default-hostfile", "rf", "rankfile"});
  if (program.session_folder.empty() || elsewhere) return;
  const auto names_a_base = [](const std::string& word) {
    return word.find("tmpdir_base") != std::string::npos;
  };
  if (std::any_of(user.begin(), user.end(), names_a_base) ||
      std::any_of(environment.begin(), environment.end(), names_a_base)) {
    return;
  }
  set(environment,
      "OMPI_MCA_orte_tmpdir_base=" + std::filesystem::absolute(program.session_folder).string());
}

ProcessCommand command_alone(const RankProgram& program) {
  ProcessCommand command;
  command.program = std::filesystem::absolute(program.program).string();
  command.arguments = program.arguments;
  command.environment = program.inherited;
  command.working_folder = program.working_folder;
  for (const std::string& entry : program.added) set(command.environment, entry);
  return command;
}

}  // namespace

Result<ProcessCommand> mpi_command(const RankProgram& program, int cores, bool root) {
  if (Errors errors = wrong(program); !errors.empty()) return failure(std::move(errors));
  if (program.alone) return command_alone(program);
  const auto mpirun = on_path("mpirun", value_of(program.inherited, "PATH"));
  if (!mpirun) {
    return failure({ErrorCode::kNotFound, "mpirun is in no folder of PATH; it starts the ranks", "",
                    "PATH", "install Open MPI: apt install openmpi-bin"});
  }
  const auto user = shell_words(value_of(program.inherited, kUserArguments), kUserArguments);
  if (!user) return tl::unexpected(user.error());

  ProcessCommand command;
  command.program = *mpirun;
  command.arguments = options(program, *user, cores, root);
  command.arguments.insert(command.arguments.end(), program.arguments.begin(),
                           program.arguments.end());
  command.environment = program.inherited;
  for (const std::string& entry : program.added) set(command.environment, entry);
  // Warnings about missing networks are switched off, and ranks that wait leave a shared core to
  // others.
  set_default(command.environment, "OMPI_MCA_btl_base_warn_component_unused=0");
  set_default(command.environment, "OMPI_MCA_mpi_yield_when_idle=1");
  set_session_folder(program, *user, command.environment);
  return command;
}

Result<Words> shell_words(const std::string& text, const std::string& origin) {
  Words words;
  bool open = false;  // a word has begun, perhaps an empty one in quotes
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool blank = letter == ' ' || letter == '\t' || letter == '\n';
    if (quote == 0 && blank) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (letter == quote) {
      quote = 0;
    } else if (quote == 0 && (letter == '\'' || letter == '"')) {
      quote = letter;
    } else if (letter == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += letter;
    }
  }
  if (quote != 0) {
    return failure({ErrorCode::kSyntax, fmt::format("'{}' has a {} without its end", text, quote),
                    "", origin, "quotes as in a shell"});
  }
  return words;
}

}  // namespace stepcast
