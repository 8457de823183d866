// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "core/atomic_file.h"
#include "core/carried_files.h"
#include "core/limits.h"
#include "core/text/escape.h"
#include "core/unit_text.h"
#include "core/work_limits.h"
#include "report/screen.h"

namespace stepcast::cli {
namespace fs = std::filesystem;

void add_output_flags(CommandLine app, OutputOptions& output,
                      const std::vector<std::string>& formats) {
  if (formats.size() > 1) {
    app.add("--format", output.format, one_of(formats))
        .type_name("FORMAT")
        .one_of_unlisted(formats)
        .shows_default();
  }
  app.add("-o,--output", output.file, "write to FILE instead of standard output").type_name("FILE");
  app.add_switch("--no-color", output.no_color, "print plain text (as the variable NO_COLOR does)");
  app.add_switch("--quiet", output.quiet, "print no notes on standard error");
}

void add_html_flag(CommandLine app, std::string& file) {
  app.add("--html", file, "also write a report that opens in a browser, without a network")
      .type_name("FILE");
}

void add_markdown_flag(CommandLine app, std::string& file) {
  app.add("--md", file, "also write the report as Markdown, for example for $GITHUB_STEP_SUMMARY")
      .type_name("FILE");
}

void add_data_flag(CommandLine app, std::string& data) {
  app.add("--data", data, "folder with models, topologies, profiles, suites and prices")
      .type_name("DIR");
}

void add_threads_flag(CommandLine app, int& threads) {
  app.add("--threads", threads, "worker threads, 0 for all cores; changes no result")
      .within(0, 4096)
      .shows_default();
}

void add_memory_limit_flag(CommandLine app, std::string& limit) {
  app.add("--memory-limit", limit,
          fmt::format("refuse a forecast that needs more memory of this machine; {} GiB unless "
                      "stated",
                      kUsualMemoryLimit >> 30))
      .type_name("SIZE");
}

Result<ByteCount> memory_limit_of(const std::string& limit) {
  if (limit.empty()) return kUsualMemoryLimit;
  const auto size = parse_bytes(limit);
  if (size && size->value() >= 1e6 && size->value() <= 1e18) {
    return static_cast<ByteCount>(size->value());
  }
  return failure({ErrorCode::kBadValue, fmt::format("'{}' is no size of memory", limit), "",
                  "--memory-limit", "1 MB or more, as in 16GB"});
}

Command within_memory_limit(Command command) {
  auto limit = std::make_shared<std::string>();
  add_memory_limit_flag(command.line, *limit);
  command.run = [limit, run = std::move(command.run)] {
    const auto most = memory_limit_of(*limit);
    if (!most) return report_errors(most.error());
    const MemoryScope scope(*most);
    return run();
  };
  return command;
}

int threads_of(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<DataRoot> find_data(const std::string& data) {
  const char* set = std::getenv("STEPCAST_DATA");
  const std::string named = data.empty() && set != nullptr ? set : data;
  if (!named.empty()) {
    if (holds_data(named)) return data_in(named);
    return failure({ErrorCode::kNotFound, fmt::format("'{}' holds no models and topologies", named),
                    "", data.empty() ? "STEPCAST_DATA" : "--data",
                    "a folder with models/, topologies/, profiles/ and suites/"});
  }
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  const fs::path folder = program.parent_path();
  if (const fs::path shared = folder.parent_path() / "share" / "stepcast";
      holds_data(shared.string())) {
    return data_in(shared.string());
  }
  for (fs::path above = folder; above != above.root_path(); above = above.parent_path()) {
    if (holds_data(above.string())) return data_in(above.string());
  }
  return data_in(std::string(kCarriedRoot));
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Form text_form(const OutputOptions& output) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool colors = !output.no_color && output.file.empty() && (!no_color || *no_color == '\0') &&
                      isatty(STDOUT_FILENO) == 1;
  return colors ? Form::kColored : Form::kText;
}

std::size_t screen_width() {
  constexpr std::size_t kNarrowest = 60;
  const char* stated = std::getenv("COLUMNS");
  if (const auto columns = stated != nullptr ? std::strtoul(stated, nullptr, 10) : 0; columns > 0) {
    return std::max<std::size_t>(columns, kNarrowest);
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return std::max<std::size_t>(size.ws_col, kNarrowest);
  }
  return kScreenWidth;
}

void tell(const Written& text) { write_all(STDERR_FILENO, text.text()); }

void tell_line(std::string_view words) { tell(Written::escaped(terminal_line(words) + "\n")); }

void tell_progress(std::string_view words) {
  tell(Written::escaped("\r\x1b[K" + terminal_line(words)));
}

void clear_progress() { tell("\r\x1b[K"); }

void tell_out_of_memory() {
  write_all(STDERR_FILENO, "error: no memory is left; a smaller scenario needs less\n");
}

namespace {

// Errors that agree in all but numbers, such as those of a hundred links that one program wrote.
struct LikeErrors {
  const Error* first;
  std::size_t count = 1;
};

std::string without_digits(const Error& error) {
  std::string out = to_string(error);
  std::erase_if(out, [](unsigned char letter) { return std::isdigit(letter) != 0; });
  return out;
}

std::vector<LikeErrors> by_likeness(const Errors& errors) {
  constexpr std::size_t kFew = 3;  // each of so few is worth its line
  std::map<std::string, std::size_t> counts;
  for (const Error& error : errors) ++counts[without_digits(error)];
  std::map<std::string, std::size_t> told;
  std::vector<LikeErrors> out;
  for (const Error& error : errors) {
    const std::string likeness = without_digits(error);
    if (counts[likeness] <= kFew) {
      out.push_back({&error});
    } else if (told[likeness]++ == 0) {
      out.push_back({&error, counts[likeness]});
    }
  }
  return out;
}

}  // namespace

int report_errors(const Errors& errors) {
  const std::vector<LikeErrors> groups = by_likeness(errors);
  const std::size_t listed = std::min(groups.size(), kMostErrorsListed);
  for (std::size_t i = 0; i < listed; ++i) {
    const auto& [first, count] = groups[i];
    const char* least = errors.size() < kMostErrorsKept ? "" : "at least ";
    const std::string more =
        count > 1 ? fmt::format("; and {}{} more like it", least, count - 1) : "";
    tell_line("error: " + to_string(*first) + more);
  }
  if (groups.size() > listed) {
    const bool all = errors.size() < kMostErrorsKept;
    tell_line(fmt::format("error: {}{} more are not listed: mend these first",
                          all ? "" : "at least ", groups.size() - listed));
  }
  return kUsageError;
}

void note_written(const OutputOptions& output, const std::string& file) {
  if (!file.empty()) note(output, "wrote " + file);
}

void note(const OutputOptions& output, std::string_view text) {
  if (!output.quiet) tell_line(text);
}

}  // namespace stepcast::cli
