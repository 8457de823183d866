// SPDX-License-Identifier: Apache-2.0
#include "cli/kept_results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/session.h"
#include "core/atomic_file.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

// The last one is memory: it has room when every disk is full.
std::vector<std::string> places_to_keep() {
  std::vector<std::string> out{temporary_folder(), "/tmp", "/var/tmp", "/dev/shm"};
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Files of two folders may have one name.
std::string name_in(const std::vector<FinishedResult>& results, std::size_t index) {
  const std::string& name = results[index].name;
  const auto end = results.begin() + static_cast<std::ptrdiff_t>(index);
  const auto before =
      std::count_if(results.begin(), end, [&](const auto& one) { return one.name == name; });
  return before == 0 ? name : fmt::format("{}-{}", before + 1, name);
}

// The new folder; "" when not all of them could be written.
std::string keep_in(const std::string& place, const std::vector<FinishedResult>& results) {
  std::string folder = (fs::path(place) / "stepcast-kept-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return "";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string file = (fs::path(folder) / name_in(results, i)).string();
    if (write_file_atomically(file, results[i].content)) continue;
    std::error_code none;
    fs::remove_all(folder, none);
    return "";
  }
  return folder;
}

// One result alone as it is, several with their names between them.
bool print_results(const std::vector<FinishedResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool named = results.size() == 1 ||
                       write_all(STDOUT_FILENO, fmt::format("==> {} <==\n", results[i].name));
    if (!named || !write_all(STDOUT_FILENO, results[i].content)) return false;
  }
  return true;
}

}  // namespace

void keep_elsewhere(const std::vector<FinishedResult>& results) {
  for (const std::string& place : places_to_keep()) {
    const std::string folder = keep_in(place, results);
    if (folder.empty()) continue;
    for (std::size_t i = 0; i < results.size(); ++i) {
      tell_line(fmt::format("the finished {} is kept in {}", results[i].name,
                            (fs::path(folder) / name_in(results, i)).string()));
    }
    return;
  }
  std::string names;
  for (const FinishedResult& result : results) {
    names += (names.empty() ? "" : ", ") + result.name;
  }
  tell_line(fmt::format("no temporary folder has room: the finished {} follows on standard output",
                        names));
  if (!print_results(results))
    tell("standard output cannot be written either: the results are lost\n");
}

Result<void> write_or_keep(const std::string& path, const std::string& content) {
  auto written = write_file_atomically(path, content);
  if (!written) keep_elsewhere({{fs::path(path).filename().string(), content}});
  return written;
}

}  // namespace stepcast::cli
