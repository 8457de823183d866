// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_output.h"

#include <charconv>
#include <optional>

namespace stepcast {
namespace {

// Longer lines are cut: nobody reads them, and a rank may never write a newline.
constexpr std::size_t kLongestLine = std::size_t{1} << 16;

struct Tag {
  std::size_t begin = 0;
  std::size_t end = 0;
  int rank = 0;
};

// "[1,0]<stderr>:" at `begin`.
std::optional<Tag> tag_at(std::string_view line, std::size_t begin) {
  const char* at = line.data() + begin + 1;
  const char* const last = line.data() + line.size();
  unsigned job = 0;
  Tag tag{begin, 0, 0};
  const auto after_job = std::from_chars(at, last, job);
  if (after_job.ec != std::errc{} || after_job.ptr == last || *after_job.ptr != ',') return {};
  const auto after_rank = std::from_chars(after_job.ptr + 1, last, tag.rank);
  if (after_rank.ec != std::errc{} || tag.rank < 0) return {};
  const auto rest_begin = static_cast<std::size_t>(after_rank.ptr - line.data());
  const std::string_view rest = line.substr(rest_begin);
  for (const std::string_view stream : {"]<stdout>:", "]<stderr>:", "]<stddiag>:"}) {
    if (rest.starts_with(stream)) {
      tag.end = rest_begin + stream.size();
      return tag;
    }
  }
  return {};
}

std::optional<Tag> next_tag(std::string_view line, std::size_t from) {
  for (auto at = line.find('[', from); at != line.npos; at = line.find('[', at + 1)) {
    if (const auto tag = tag_at(line, at)) return tag;
  }
  return {};
}

}  // namespace

void RankOutput::add(std::string_view text) {
  pending_ += text;
  std::size_t begin = 0;
  for (auto end = pending_.find('\n'); end != pending_.npos; end = pending_.find('\n', begin)) {
    physical_line(std::string_view(pending_).substr(begin, end - begin), true);
    begin = end + 1;
  }
  pending_.erase(0, begin);
  if (pending_.size() > kLongestLine) {
    physical_line(pending_, true);
    pending_.clear();
  }
}

void RankOutput::end() {
  if (!pending_.empty()) physical_line(pending_, false);
  pending_.clear();
  for (const auto& [rank, line] : unended_) {
    if (!line.empty()) sink_(rank, line);
  }
  unended_.clear();
}

// The tags of one line of the merged stream; only its last part is ended by the newline.
void RankOutput::physical_line(std::string_view line, bool ended) {
  auto tag = next_tag(line, 0);
  const std::size_t untagged = tag ? tag->begin : line.size();
  if (untagged > 0 || !tag) part(kLauncher, line.substr(0, untagged), ended || tag);
  while (tag) {
    const auto next = next_tag(line, tag->end);
    const std::size_t end = next ? next->begin : line.size();
    part(tag->rank, line.substr(tag->end, end - tag->end), ended && !next);
    tag = next;
  }
}

void RankOutput::part(int rank, std::string_view text, bool ended) {
  std::string& line = unended_[rank];
  if (line.size() < kLongestLine) line += text.substr(0, kLongestLine - line.size());
  if (!ended) return;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  sink_(rank, line);
  line.clear();
}

}  // namespace stepcast
