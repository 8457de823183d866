// SPDX-License-Identifier: Apache-2.0
#include "graphs/goal_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/text/characters.h"
#include "core/text_file.h"

namespace stepcast {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

bool is_letter_of_word(char c) {
  return kBlanks.find(c) == kBlanks.npos && c != ':' && c != '{' && c != '}' && c != ';';
}

// Cuts a line into words; ':', '{', '}' and ';' are words of their own. Comments are left out, and
// one that a line begins goes on in the next.
class LineWords {
 public:
  const std::vector<std::string_view>& cut(std::string_view line) {
    words_.clear();
    for (std::size_t at = 0; at < line.size();) {
      if (in_comment_) {
        const std::size_t end = line.find("*/", at);
        if (end == line.npos) return words_;
        in_comment_ = false;
        at = end + 2;
      } else if (line.substr(at, 2) == "//" || line[at] == '#') {
        return words_;
      } else if (line.substr(at, 2) == "/*") {
        in_comment_ = true;
        at += 2;
      } else if (kBlanks.find(line[at]) != kBlanks.npos) {
        ++at;
      } else {
        std::size_t end = at + 1;
        if (is_letter_of_word(line[at])) {
          while (end < line.size() && is_letter_of_word(line[end]) && line.substr(end, 2) != "//" &&
                 line.substr(end, 2) != "/*") {
            ++end;
          }
        }
        words_.push_back(line.substr(at, end - at));
        at = end;
      }
    }
    return words_;
  }
  bool is_open() const { return in_comment_; }

 private:
  std::vector<std::string_view> words_;
  bool in_comment_ = false;
};

template <class Number>
std::optional<Number> whole_number(std::string_view word) {
  Number out = 0;
  const auto [end, error] = std::from_chars(word.begin(), word.end(), out);
  if (error != std::errc() || end != word.end()) return std::nullopt;
  return out;
}

class GoalReader {
 public:
  explicit GoalReader(std::string file) : file_(std::move(file)) {
    graph_.format = "GOAL";
    graph_.sends = SendRule::kEager;
    graph_.eager_bytes = kGoalEagerBytes;
  }

  void take(const FileLine& line) {
    ++line_;
    if (!errors_.empty()) return;
    if (line.is_too_long) {
      return fail(fmt::format("is longer than {} bytes", kLongestGraphWord));
    }
    const auto& words = words_.cut(line.text);
    for (std::size_t at = 0; at < words.size() && errors_.empty();) {
      at += take_statement({words.data() + at, words.size() - at});
    }
  }

  Result<ExecutionGraph> finish() {
    if (errors_.empty()) check_end();
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(graph_);
  }

 private:
  using Words = std::span<const std::string_view>;

  void fail(std::string message, std::string hint = "") {
    errors_.push_back({ErrorCode::kSyntax, std::move(message), file_, fmt::format("line {}", line_),
                       std::move(hint)});
  }
  static std::string quoted(std::string_view word) {
    return fmt::format("'{}'", shortened(with_utf8_alone(word), kLongestQuote));
  }

  void check_end() {
    if (words_.is_open()) return fail("ends inside a comment", "*/");
    if (rank_ != kNowhere) return fail(fmt::format("ends inside rank {}", rank_), "}");
    if (graph_.ranks.empty()) return fail("has no num_ranks", "num_ranks 16");
    const auto missing = std::ranges::find(is_there_, false);
    if (missing == is_there_.end()) return;
    fail(fmt::format("has no rank {} of {}", missing - is_there_.begin(), is_there_.size()),
         "one block for each rank, also for one that does nothing");
  }

  // How many words it took; at least one.
  std::size_t take_statement(Words words) {
    if (words[0] == ";") return 1;
    if (graph_.ranks.empty()) return take_head(words);
    if (rank_ == kNowhere) return take_begin(words);
    if (words[0] == "}") {
      end_rank();
      return 1;
    }
    if (words[0] == "{") {
      fail("'{' inside a rank", "} ends one");
      return 1;
    }
    // "label: operation", "label requires label", or an operation without a label.
    if (words.size() > 1 && words[1] == ":") {
      if (words.size() == 2) {
        fail("a label without an operation", "l1: calc 100");
        return 2;
      }
      return 2 + take_operation(words.subspan(2), words[0]);
    }
    if (words.size() > 1 && (words[1] == "requires" || words[1] == "irequires")) {
      return take_requirement(words);
    }
    return take_operation(words, "");
  }

  std::size_t take_head(Words words) {
    const auto count = words.size() > 1 && words[0] == "num_ranks"
                           ? whole_number<std::int64_t>(words[1])
                           : std::nullopt;
    if (!count) {
      fail(fmt::format("{} where num_ranks is due", quoted(words[0])),
           "num_ranks and how many there are");
    } else if (*count < 1 || *count > kMostGraphRanks) {
      fail(fmt::format("num_ranks is {}", *count), fmt::format("1 to {}", kMostGraphRanks));
    } else {
      graph_.ranks.resize(static_cast<std::size_t>(*count));
      is_there_.assign(static_cast<std::size_t>(*count), false);
    }
    return 2;
  }

  std::size_t take_begin(Words words) {
    if (brace_is_due_) {
      if (words[0] != "{") fail(fmt::format("{} where '{{' is due", quoted(words[0])));
      rank_ = next_rank_;
      brace_is_due_ = false;
      return 1;
    }
    const auto number = words.size() > 1 && words[0] == "rank"
                            ? whole_number<std::int64_t>(words[1])
                            : std::nullopt;
    if (!number) {
      fail(fmt::format("{} outside a rank", quoted(words[0])), "rank 0 {");
      return words.size();
    }
    const auto ranks = static_cast<std::int64_t>(graph_.ranks.size());
    if (*number < 0 || *number >= ranks) {
      fail(fmt::format("rank {} of {}", *number, ranks), fmt::format("0 to {}", ranks - 1));
    } else if (is_there_[static_cast<std::size_t>(*number)]) {
      fail(fmt::format("rank {} stands twice", *number), "one block for each rank");
    } else {
      next_rank_ = static_cast<std::int32_t>(*number);
      is_there_[static_cast<std::size_t>(*number)] = true;
      out_ = &graph_.ranks[static_cast<std::size_t>(*number)];
      out_->file = file_;
      brace_is_due_ = true;
    }
    return 2;
  }

  std::size_t take_operation(Words words, std::string_view label) {
    if (++nodes_ > kMostGraphNodes) {
      fail(fmt::format("is node {} of the file", nodes_),
           fmt::format("at most {} nodes", kMostGraphNodes));
      return words.size();
    }
    GraphNode one;
    one.id = static_cast<std::uint64_t>(line_);
    std::size_t taken = 0;
    if (words[0] == "calc") {
      taken = take_calc(words, one);
    } else if (words[0] == "send" || words[0] == "recv") {
      taken = take_message(words, one);
    } else {
      fail(fmt::format("{} is no operation", quoted(words[0])), "send, recv or calc");
      return words.size();
    }
    // "cpu C" and "nic K" name the core and the port; operations of one core follow each other.
    while (errors_.empty() && taken + 1 < words.size() &&
           (words[taken] == "cpu" || words[taken] == "nic")) {
      const auto number = whole_number<std::uint8_t>(words[taken + 1]);
      if (!number) {
        fail(fmt::format("{} {}", words[taken], quoted(words[taken + 1])), "0 to 255");
      } else if (words[taken] == "cpu") {
        one.lane = *number;
      }
      taken += 2;
    }
    if (errors_.empty()) add(one, label);
    return taken;
  }

  std::size_t take_calc(Words words, GraphNode& one) {
    const auto time = words.size() > 1 ? whole_number<std::uint64_t>(words[1]) : std::nullopt;
    if (!time || static_cast<double>(*time) > kLongestGraphNode_s * 1e9) {
      fail("calc without its time",
           fmt::format("calc 100, in ns, at most {:g}", kLongestGraphNode_s * 1e9));
      return words.size();
    }
    one.kind = NodeKind::kCompute;
    one.duration = Seconds(static_cast<double>(*time) * 1e-9);
    return 2;
  }

  // "send 8b to 1 tag 0", "recv 8b from 0"
  std::size_t take_message(Words words, GraphNode& one) {
    const bool sends = words[0] == "send";
    one.kind = sends ? NodeKind::kSend : NodeKind::kReceive;
    const char* form = sends ? "send 8b to 1 tag 0" : "recv 8b from 0 tag 0";
    if (words.size() < 4 || words[2] != (sends ? "to" : "from")) {
      fail(fmt::format("{} without its size or peer", words[0]), form);
      return words.size();
    }
    std::string_view size = words[1];
    if (size.ends_with("b")) size.remove_suffix(1);
    const auto bytes = whole_number<std::uint64_t>(size);
    const auto peer = whole_number<std::int64_t>(words[3]);
    if (!bytes || static_cast<double>(*bytes) > kMostGraphBytes || !peer) {
      fail(fmt::format("{} {} {} {}", words[0], quoted(words[1]), words[2], quoted(words[3])),
           form);
      return words.size();
    }
    one.bytes = static_cast<double>(*bytes);
    if (*peer == -1 && !sends) {
      fail("a receive from any rank is not supported: who is first depends on the cluster",
           "name the rank");
      return words.size();
    }
    const auto ranks = static_cast<std::int64_t>(graph_.ranks.size());
    if (*peer < 0 || *peer >= ranks || *peer == next_rank_) {
      fail(*peer == next_rank_ ? "a message of a rank to itself"
                               : fmt::format("rank {} of {}", *peer, ranks),
           fmt::format("another rank, 0 to {}", ranks - 1));
      return words.size();
    }
    one.peer = static_cast<std::int32_t>(*peer);
    if (words.size() < 6 || words[4] != "tag") return 4;
    const auto tag = whole_number<std::int64_t>(words[5]);
    if (!tag || *tag < 0) {
      fail(fmt::format("tag {}", quoted(words[5])),
           "a number from 0 on: a receive of any tag is not supported");
    }
    one.tag = tag.value_or(0);
    return 6;
  }

  void add(GraphNode one, std::string_view label) {
    const auto place = static_cast<std::int32_t>(out_->nodes.size());
    if (!label.empty() && !labels_.try_emplace(std::string(label), place).second) {
      return fail(fmt::format("the label {} stands twice in rank {}", quoted(label), rank_));
    }
    out_->nodes.push_back(one);
    out_->labels.push_back(label.empty() ? kNowhere : name_of(label));
  }

  // Ranks mostly have the same labels.
  std::int32_t name_of(std::string_view label) {
    const auto next = static_cast<std::int32_t>(graph_.names.size());
    const auto [known, fresh] = names_.try_emplace(std::string(label), next);
    if (fresh) graph_.names.push_back(known->first);
    return known->second;
  }

  std::size_t take_requirement(Words words) {
    if (words.size() < 3) {
      fail(fmt::format("{} without the label of an operation", words[1]), "l2 requires l1");
      return words.size();
    }
    // Labels may stand further down, so they are looked up at the rank's end.
    required_.push_back(
        {std::string(words[0]), std::string(words[2]), words[1] == "irequires", line_});
    return 3;
  }

  void end_rank() {
    std::vector<std::pair<std::int32_t, GraphDependency>> edges;
    edges.reserve(required_.size());
    for (const Required& one : required_) {
      const auto after = labels_.find(one.after);
      const auto before = labels_.find(one.before);
      if (after == labels_.end() || before == labels_.end()) {
        line_ = one.line;
        const std::string& missing = after == labels_.end() ? one.after : one.before;
        return fail(fmt::format("there is no {} in rank {}", quoted(missing), rank_),
                    "the label of an operation of this rank");
      }
      edges.push_back({after->second, {before->second, one.on_start}});
    }
    std::ranges::stable_sort(edges, {}, [](const auto& edge) { return edge.first; });
    out_->dependencies.reserve(edges.size());
    for (const auto& [node, dependency] : edges) {
      GraphNode& after = out_->nodes[static_cast<std::size_t>(node)];
      if (after.dependencies++ == 0) {
        after.first_dependency = static_cast<std::int32_t>(out_->dependencies.size());
      }
      out_->dependencies.push_back(dependency);
    }
    out_->nodes.shrink_to_fit();
    out_->labels.shrink_to_fit();
    labels_.clear();
    required_.clear();
    rank_ = kNowhere;
  }

  struct Required {
    std::string after, before;
    bool on_start;
    std::int64_t line;
  };

  std::string file_;
  ExecutionGraph graph_;
  LineWords words_;
  std::int64_t line_ = 0, nodes_ = 0;
  std::int32_t rank_ = kNowhere, next_rank_ = kNowhere;
  bool brace_is_due_ = false;
  RankGraph* out_ = nullptr;
  std::vector<bool> is_there_;
  std::unordered_map<std::string, std::int32_t> labels_;  // of this rank: the node
  std::unordered_map<std::string, std::int32_t> names_;   // of all: into ExecutionGraph::names
  std::vector<Required> required_;
  Errors errors_;
};

}  // namespace

bool looks_like_goal(std::string_view begin) {
  const std::size_t word = begin.find_first_not_of(" \t\r\n");
  if (word == begin.npos) return false;
  begin.remove_prefix(word);
  return begin.starts_with("num_ranks") || begin.starts_with("//") || begin.starts_with("/*") ||
         begin.starts_with("#");
}

Result<ExecutionGraph> read_goal(const std::string& file) {
  GoalReader reader(file);
  const auto read = read_lines(file, kLongestGraphWord, {.most_bytes = kMostLogBytes},
                               [&](const FileLine& line) { reader.take(line); });
  if (!read) return failure(read.error());
  return reader.finish();
}

Result<ExecutionGraph> goal_of(std::string_view text, const std::string& file) {
  GoalReader reader(file);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.take({text.substr(0, end), true, end > kLongestGraphWord});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace stepcast
