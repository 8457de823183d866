// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include "core/atomic_file.h"
#include "core/failed_write.h"
#include "core/gathered_errors.h"
#include "launch/signal_watch.h"
#include "report/screen.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

std::string reason() { return std::strerror(errno); }

std::string folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// `why` is empty when it can be written.
struct Writability {
  std::string why;
  std::string hint = "name a file in a folder that you may write to";
};

Writability writability(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return {"is a folder"};
    if (::access(path.c_str(), W_OK) != 0) return {reason()};
    if (!S_ISREG(status.st_mode)) return {};
  }
  const std::string folder = folder_of(file_behind_links(path));
  if (::stat(folder.c_str(), &status) != 0) return {fmt::format("{}: {}", folder, reason())};
  if (!S_ISDIR(status.st_mode)) return {fmt::format("{} is not a folder", folder)};
  if (!has_room(folder)) {
    Writability out;
    out.hint = hint_of_failed_write(errno, out.hint);
    out.why = fmt::format("{}: {}", folder, reason());
    return out;
  }
  return {};
}

}  // namespace

void Output::plan(const std::string& flag, const std::string& path) {
  if (!path.empty()) targets_.push_back({flag, path});
}

void Output::protect(const std::string& flag, const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none)) inputs_.push_back({flag, path});
}

Errors Output::check() const {
  Errors errors;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    const auto [why, hint] = writability(target.path);
    if (!why.empty()) {
      errors.push_back({ErrorCode::kIo, fmt::format("'{}' cannot be written: {}", target.path, why),
                        "", target.flag, hint});
    }
    for (const Target& input : inputs_) {
      if (is_special_file(target.path) ||
          file_behind_links(input.path) != file_behind_links(target.path))
        continue;
      errors.push_back(
          {ErrorCode::kIllegal,
           fmt::format("'{}' is read as {} and would be lost", target.path, input.flag), "",
           target.flag, "name another file"});
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!is_special_file(target.path) &&
          file_behind_links(targets_[j].path) == file_behind_links(target.path)) {
        errors.push_back({ErrorCode::kIllegal,
                          fmt::format("'{}' is also the file of {}", target.path, targets_[j].flag),
                          "", target.flag, "name two files"});
      }
    }
  }
  return errors;
}

void Output::set_file(const std::string& path, Written content) {
  files_.push_back({path, std::move(content)});
}

void Output::set_main(const OutputOptions& options, Written content) {
  // A file is the same from any terminal.
  const std::size_t width = options.file.empty() ? screen_width() : kScreenWidth;
  if (options.format == "table") content = fitted_to_screen(content, width);
  set_as_it_is(options.file, std::move(content));
}

void Output::set_as_it_is(const std::string& path, Written content) {
  if (path.empty()) {
    standard_output_ = std::move(content);
  } else {
    set_file(path, std::move(content));
  }
}

std::vector<FinishedResult> Output::all() const {
  std::vector<FinishedResult> out;
  for (const File& file : files_) out.push_back({fs::path(file.path).filename(), file.content});
  if (!standard_output_.empty()) out.push_back({"standard-output.txt", standard_output_});
  return out;
}

Errors Output::deliver(std::vector<FinishedResult>& left) const {
  std::vector<AtomicFile> written;
  Errors errors;
  left = all();
  // Else what has no name yet would stay behind; without it the files are written all the same.
  std::optional<SignalWatch> signals;
  try {
    signals.emplace();
  } catch (const std::system_error&) {
  }
  for (const File& file : files_) {
    if (signals && signals->count() > 0) {
      left.clear();
      return {{ErrorCode::kIo, "interrupted: no file was written", "", "", ""}};
    }
    written.emplace_back(file.path);
    const auto done = written.back().write(file.content.text());
    if (!done) append(errors, done.error());
  }
  if (!errors.empty()) return errors;
  left.clear();
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (const auto done = written[i].publish(); !done) {
      append(errors, done.error());
      left.push_back({fs::path(files_[i].path).filename(), files_[i].content});
    }
  }
  if (errors.empty() && write_all(STDOUT_FILENO, standard_output_.text())) return errors;
  // Whoever closes a pipe has read enough of it.
  const bool closed = errors.empty() && errno == EPIPE;
  if (errors.empty()) errors.push_back({ErrorCode::kIo, reason(), "standard output", "", ""});
  if (!closed && !standard_output_.empty()) left.push_back(all().back());
  return errors;
}

int Output::commit() const {
  std::vector<FinishedResult> left;
  Errors errors;
  try {
    errors = deliver(left);
  } catch (const std::bad_alloc&) {
    left = all();
    errors.push_back({ErrorCode::kIo, "no memory is left to write the results", "", "", ""});
  }
  if (errors.empty()) return kOk;
  const int code = report_errors(errors);
  if (worth_ == Worth::kKeeping && !left.empty()) keep_elsewhere(left);
  return code;
}

int print(Written text) {
  Output output(Worth::kNothing);
  output.set_as_it_is("", std::move(text));
  return output.commit();
}

}  // namespace stepcast::cli
