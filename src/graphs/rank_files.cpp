// SPDX-License-Identifier: Apache-2.0
#include "graphs/rank_files.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "graphs/execution_graph.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".et";

// The rank in "all_reduce.3.et".
std::optional<std::int64_t> rank_in(std::string_view name) {
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const std::size_t dot = name.rfind('.');
  const std::string_view digits = dot == name.npos ? name : name.substr(dot + 1);
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), rank);
  if (error != std::errc() || end != digits.end() || rank < 0) return std::nullopt;
  return rank;
}

class FileSet {
 public:
  Errors add_word(const std::string& word) {
    std::error_code none;
    const fs::path path(word);
    if (fs::is_directory(path, none)) return add_folder(path, "", word);
    if (fs::exists(path, none)) return add_file(path.string());
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (fs::is_directory(folder, none)) {
      return add_folder(folder, path.filename().string() + ".", word);
    }
    return {{ErrorCode::kNotFound, "there is no such file", word, "", kWanted}};
  }

  Result<std::vector<std::string>> finish() {
    if (files_.size() == 1 && !is_numbered_) return std::vector{files_.begin()->second};
    std::vector<std::string> out;
    for (const auto& [rank, file] : files_) {
      const auto due = static_cast<std::int64_t>(out.size());
      if (rank != due) {
        return failure(
            {ErrorCode::kMissingKey,
             fmt::format("the file of rank {} is missing: the next one is of rank {}", due, rank),
             file, "", "give the files of all ranks, from 0 on"});
      }
      out.push_back(file);
    }
    return out;
  }

 private:
  static constexpr const char* kWanted =
      "a trace PREFIX.RANK.et, a folder of them, the PREFIX of a set, or a schedule in GOAL";

  Errors add_file(const std::string& file) {
    const auto named = rank_in(fs::path(file).filename().string());
    is_numbered_ = is_numbered_ || named.has_value();
    const std::int64_t rank = named.value_or(0);
    if (rank >= kMostGraphRanks) {
      return {{ErrorCode::kBadValue, fmt::format("is of rank {}", rank), file, "",
               fmt::format("at most {} ranks", kMostGraphRanks)}};
    }
    const auto [known, fresh] = files_.try_emplace(rank, file);
    if (fresh) return {};
    return {{ErrorCode::kIllegal, fmt::format("is of rank {}, as {} is", rank, known->second), file,
             "", "one file for each rank, named PREFIX.RANK.et"}};
  }

  Errors add_folder(const fs::path& folder, const std::string& prefix, const std::string& word) {
    Errors errors;
    bool found = false;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      const std::string name = at->path().filename().string();
      if (!name.starts_with(prefix) || !rank_in(name)) continue;
      // "PREFIX." and the rank, with nothing in between.
      if (!prefix.empty() && name.find('.', prefix.size()) != name.size() - kEnding.size())
        continue;
      found = true;
      for (const Error& error : add_file((folder / name).string())) errors.push_back(error);
    }
    if (failed) return {{ErrorCode::kIo, failed.message(), word, "", ""}};
    if (!found) {
      const bool is_folder = prefix.empty();
      return {{ErrorCode::kNotFound,
               is_folder ? "has no file PREFIX.RANK.et" : "there is no such file", word, "",
               kWanted}};
    }
    return errors;
  }

  std::map<std::int64_t, std::string> files_;
  bool is_numbered_ = false;
};

}  // namespace

Result<std::vector<std::string>> files_by_rank(const std::vector<std::string>& words) {
  FileSet set;
  Errors errors;
  for (const std::string& word : words) {
    for (Error& error : set.add_word(word)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return failure(std::move(errors));
  return set.finish();
}

}  // namespace stepcast
