// SPDX-License-Identifier: Apache-2.0
#include "cluster/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "cluster/host_list.h"

namespace stepcast {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_key(std::string_view key, std::string_view name) {
  return std::ranges::equal(key, name, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

// One line of the file, with those that a backslash at its end adds.
struct SlurmLine {
  std::string text;
  std::size_t number = 0;  // of its first line
};

std::vector<SlurmLine> lines_of(std::string_view text) {
  std::vector<SlurmLine> out;
  bool goes_on = false;
  for (std::size_t begin = 0, number = 1; begin <= text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line = without_blanks(line.substr(0, line.find('#')));
    const bool more = line.ends_with('\\');
    if (more) line.remove_suffix(1);
    if (!goes_on) out.push_back({"", number});
    out.back().text += line;
    goes_on = more;
  }
  return out;
}

struct SlurmEntry {
  std::string name;
  bool is_block = false;
  std::string nodes, switches;
  std::size_t line = 0;
};

class SlurmReader {
 public:
  SlurmReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<SlurmTopology> read() {
    for (const SlurmLine& line : lines_of(text_)) read_line(line);
    if (errors_.empty()) add_leaves();
    if (errors_.empty()) add_above();
    if (errors_.empty() && out_.leaves.empty()) fail(0, "no switch or block has nodes");
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(out_);
  }

 private:
  void fail(std::size_t line, std::string message) {
    if (line > 0) message = fmt::format("line {}: {}", line, message);
    errors_.push_back({ErrorCode::kBadValue, std::move(message), file_, "",
                       "lines such as SwitchName=leaf0 Nodes=node[0-15], SwitchName=spine "
                       "Switches=leaf[0-3] or BlockName=rack0 Nodes=node[0-17]"});
  }

  void read_line(const SlurmLine& line) {
    SlurmEntry entry;
    entry.line = line.number;
    bool is_plain = true;  // all it says is of the kinds that place nodes
    std::string_view rest = without_blanks(line.text);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
      const std::string_view word = rest.substr(0, end);
      rest = without_blanks(rest.substr(end));
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) {
        return fail(line.number, fmt::format("'{}' is no key with a value", word));
      }
      const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
      if (is_key(key, "SwitchName") || is_key(key, "BlockName")) {
        entry.name = value;
        entry.is_block = is_key(key, "BlockName");
      } else if (is_key(key, "Nodes")) {
        entry.nodes = value;
      } else if (is_key(key, "Switches")) {
        entry.switches = value;
      } else {
        is_plain = is_plain && is_key(key, "LinkSpeed");
        if (!is_plain && !is_key(key, "BlockSizes")) {
          return fail(line.number, fmt::format("'{}' is not known", key));
        }
      }
    }
    if (!entry.name.empty()) entries_.push_back(std::move(entry));
  }

  void add_leaves() {
    for (const SlurmEntry& entry : entries_) {
      out_.are_blocks = out_.are_blocks || entry.is_block;
      if (entry.nodes.empty()) continue;
      auto nodes = expand_hosts(entry.nodes);
      if (!nodes) {
        fail(entry.line, nodes.error().front().message);
        continue;
      }
      leaf_of_.emplace(entry.name, out_.leaves.size());
      for (const std::string& node : *nodes) {
        if (known_.emplace(node, entry.name).second) continue;
        fail(entry.line, fmt::format("{} stands under {} and {}", node, known_[node], entry.name));
        return;
      }
      out_.leaves.push_back({entry.name, std::move(*nodes), 0});
    }
  }

  // Switches right above leaves; those above them join all.
  void add_above() {
    std::size_t above = 0;
    for (const SlurmEntry& entry : entries_) {
      if (entry.switches.empty()) continue;
      const auto switches = expand_hosts(entry.switches);
      if (!switches) {
        fail(entry.line, switches.error().front().message);
        continue;
      }
      bool has_leaves = false;
      for (const std::string& name : *switches) {
        const auto leaf = leaf_of_.find(name);
        const auto named = [&](const SlurmEntry& other) { return other.name == name; };
        if (leaf == leaf_of_.end() && std::ranges::none_of(entries_, named)) {
          fail(entry.line, fmt::format("there is no switch '{}'", name));
          return;
        }
        if (leaf == leaf_of_.end()) continue;
        out_.leaves[leaf->second].above = above;
        has_leaves = true;
      }
      if (has_leaves) ++above;
    }
    out_.switches_above = std::max<std::size_t>(above, 1);
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<SlurmEntry> entries_;
  std::map<std::string, std::size_t> leaf_of_;
  std::map<std::string, std::string> known_;  // the leaf of a node
  SlurmTopology out_;
  Errors errors_;
};

}  // namespace

std::map<std::string, SlurmTopology::Place, std::less<>> SlurmTopology::places() const {
  std::map<std::string, Place, std::less<>> out;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (std::size_t i = 0; i < leaves[leaf].nodes.size(); ++i) {
      out.emplace(leaves[leaf].nodes[i], Place{leaf, i});
    }
  }
  return out;
}

Result<SlurmTopology> parse_slurm_topology(std::string_view text, const std::string& file) {
  return SlurmReader(text, file).read();
}

}  // namespace stepcast
