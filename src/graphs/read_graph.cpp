// SPDX-License-Identifier: Apache-2.0
#include "graphs/read_graph.h"

#include <filesystem>
#include <string_view>

#include "core/text_file.h"
#include "graphs/chakra_reader.h"
#include "graphs/goal_reader.h"
#include "graphs/graph_groups.h"
#include "graphs/rank_files.h"

namespace stepcast {
namespace {

constexpr std::size_t kBegin = 256;                                 // bytes that tell the form
constexpr std::string_view kBinaryGoal("\x7f\x10\0\0\0\0\0\0", 8);  // txt2bin's mark, 4223

Result<std::string> begin_of(const std::string& file) {
  std::error_code none;
  std::string out;
  if (!std::filesystem::is_regular_file(file, none)) return out;
  const auto read = read_pieces(file, {.most_bytes = kMostLogBytes}, [&](std::string_view piece) {
    out += piece.substr(0, kBegin);
    return out.size() < kBegin;
  });
  if (!read) return failure(read.error());
  return out;
}

}  // namespace

Result<ExecutionGraph> read_graph(const GraphSource& source) {
  for (const std::string& word : source.words) {
    const auto begin = begin_of(word);
    if (!begin) return failure(begin.error());
    if (begin->starts_with(kBinaryGoal)) {
      return failure({ErrorCode::kNotSupported, "is GOAL in its binary form", word, "",
                      "the text that txt2bin was given"});
    }
    if (!looks_like_goal(*begin)) continue;
    if (source.words.size() == 1) return read_goal(word);
    return failure({ErrorCode::kIllegal, "is a schedule in GOAL, which holds all ranks by itself",
                    word, "", "give this file alone"});
  }
  const auto files = files_by_rank(source.words);
  if (!files) return failure(files.error());
  ChakraRules rules;
  rules.ignore_missing = source.ignore_missing;
  rules.data_alone = source.data_alone;
  rules.dimensions = source.dimensions;
  if (!source.groups.empty()) {
    auto read = read_rank_groups(source.groups);
    if (!read) return failure(read.error());
    rules.groups = std::move(*read);
  }
  return read_chakra(*files, rules);
}

}  // namespace stepcast
