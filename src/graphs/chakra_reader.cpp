// SPDX-License-Identifier: Apache-2.0
#include "graphs/chakra_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/json.h"
#include "core/parse_json.h"
#include "core/text/characters.h"
#include "core/text_file.h"
#include "graphs/chakra_node.h"
#include "graphs/wire_format.h"

namespace stepcast {
namespace {

// One node of a PyTorch trace has some kB, with the shapes of its inputs.
constexpr std::uint64_t kLongestMessage = std::uint64_t{16} << 20;
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr const char* kNoTrace =
    "is no Chakra execution trace: it does not begin with its metadata";
constexpr const char* kWanted = "a trace of MLCommons Chakra (protobuf), or a schedule in GOAL";

struct Shared {
  ExecutionGraph& graph;
  GroupTable groups;
  const ChakraRules& rules;
  std::unordered_map<std::string, std::int32_t> names;
  std::int64_t nodes = 0;

  std::int32_t name_of(std::string_view text) {
    if (text.empty()) return kNowhere;
    const std::string word = shortened(with_utf8_alone(text.substr(0, kLongestGraphWord)), 200);
    const auto [known, fresh] = names.try_emplace(word, static_cast<std::int32_t>(names.size()));
    if (fresh) graph.names.push_back(word);
    return known->second;
  }
};

class RankReader {
 public:
  RankReader(Shared& shared, std::int32_t rank, std::string file)
      : shared_(shared), rank_(rank), file_(std::move(file)) {
    out().file = file_;
  }

  bool feed(std::string_view piece) {
    const bool goes_on = !begun_.empty();
    if (goes_on) begun_ += piece;
    const std::string_view text = goes_on ? std::string_view(begun_) : piece;
    std::size_t done = 0;
    while (errors_.empty()) {
      const std::size_t taken = take_message(text.substr(done));
      if (taken == 0) break;
      done += taken;
    }
    if (goes_on) {
      begun_.erase(0, done);
    } else {
      begun_ = text.substr(done);
    }
    return errors_.empty();
  }

  Errors finish() {
    if (errors_.empty() && !has_head_) {
      fail(begun_.empty() ? "is empty: a trace begins with its metadata" : kNoTrace, kWanted);
    }
    if (errors_.empty() && !begun_.empty()) {
      fail("ends inside a node: the file is cut", "the whole file: copy it anew");
    }
    if (errors_.empty()) resolve_dependencies();
    if (errors_.empty()) resolve_groups();
    return std::move(errors_);
  }

 private:
  RankGraph& out() { return shared_.graph.ranks[static_cast<std::size_t>(rank_)]; }

  void fail(std::string message, std::string hint = "") {
    errors_.push_back({ErrorCode::kSyntax, std::move(message), file_, "", std::move(hint)});
  }
  void fail_at(const GraphNode& node, const std::string& words, std::string hint = "") {
    const std::int32_t name = node.name;
    const std::string shown =
        name == kNowhere
            ? ""
            : fmt::format(" ({})", shared_.graph.names[static_cast<std::size_t>(name)]);
    errors_.push_back({ErrorCode::kBadValue, words, file_, fmt::format("node {}{}", node.id, shown),
                       std::move(hint)});
  }

  // 0: the message is not whole yet, or is refused.
  std::size_t take_message(std::string_view text) {
    if (!has_head_ && text.starts_with(kGzip)) {
      fail("is packed by gzip", "unpack it first");
      return 0;
    }
    std::uint64_t length = 0;
    const int taken = take_varint(text, length);
    if (taken == 0) return 0;
    if (taken < 0 || length > kLongestMessage) {
      fail(has_head_ ? fmt::format("is damaged behind node {}: a message of {} bytes follows",
                                   last_id_, length)
                     : kNoTrace,
           kWanted);
      return 0;
    }
    const auto begin = static_cast<std::size_t>(taken);
    const auto size = static_cast<std::size_t>(length);
    if (text.size() - begin < size) return 0;
    take(text.substr(begin, size));
    return begin + size;
  }

  void take(std::string_view message) {
    if (!has_head_) return take_head(message);
    ChakraNode fresh;
    fresh.control = std::move(node_.control);  // their room
    fresh.data = std::move(node_.data);
    fresh.control.clear();
    fresh.data.clear();
    node_ = std::move(fresh);
    if (const auto read = read_chakra_node(message, node_); !read) {
      fail(fmt::format("node {}, behind node {}: {}", node_.id, last_id_, read.error()));
    } else {
      add_node();
    }
    last_id_ = node_.id;
  }

  // GlobalMetadata: the version and attributes.
  void take_head(std::string_view message) {
    WireReader reader(message);
    WireField field;
    while (reader.next(field)) {
      const bool known = field.type == WireType::kBytes && (field.number == 1 || field.number == 2);
      if (!known) return fail(kNoTrace);
    }
    if (reader.wrong() != nullptr) {
      return fail(kNoTrace);
    }
    has_head_ = true;
  }

  void add_node() {
    if (++shared_.nodes > kMostGraphNodes) {
      return fail(fmt::format("makes more than {} nodes with the files before it", kMostGraphNodes),
                  "fewer ranks or steps");
    }
    GraphNode one;
    one.id = node_.id;
    one.name = shared_.name_of(node_.name);
    one.duration = Seconds(static_cast<double>(node_.duration_us) * 1e-6);
    if (one.duration > Seconds(kLongestGraphNode_s)) {
      return fail_at(one, fmt::format("lasts {} us", node_.duration_us),
                     fmt::format("at most {:.0f} s", kLongestGraphNode_s));
    }
    const auto place = static_cast<std::int32_t>(out().nodes.size());
    if (!places_.try_emplace(node_.id, place).second) {
      return fail_at(one, "stands twice", "one node for each id");
    }
    set_kind(one);
    if (!errors_.empty()) return;
    one.first_dependency = static_cast<std::int32_t>(waits_for_.size());
    if (!shared_.rules.data_alone) {
      waits_for_.insert(waits_for_.end(), node_.control.begin(), node_.control.end());
    }
    waits_for_.insert(waits_for_.end(), node_.data.begin(), node_.data.end());
    one.dependencies = static_cast<std::int32_t>(waits_for_.size()) - one.first_dependency;
    out().nodes.push_back(one);
  }

  void set_kind(GraphNode& one) {
    switch (node_.type) {
      case ChakraType::kInvalid:
        return;
      case ChakraType::kMetadata:
        return read_group_definitions();
      case ChakraType::kMemoryLoad:
      case ChakraType::kMemoryStore:
      case ChakraType::kStorage:
      case ChakraType::kBatch:
      case ChakraType::kCheckpoint:
        one.kind = NodeKind::kMemory;
        break;
      default:
        one.kind = NodeKind::kCompute;
    }
    // Operators of the host that call a collective have its type, too.
    const bool communicates =
        node_.type >= ChakraType::kSend && node_.type <= ChakraType::kCollective;
    if (node_.is_on_host && one.kind == NodeKind::kCompute) one.kind = NodeKind::kHost;
    if (communicates && !node_.is_on_host) return set_communication(one);
    one.flops = bounded(one, node_.operations.value_or(0), kMostGraphFlops, "num_ops");
    one.bytes = bounded(one, node_.tensor_bytes.value_or(0), kMostGraphBytes, "tensor_size");
  }

  double bounded(const GraphNode& one, std::uint64_t value, double most, const char* name) {
    if (static_cast<double>(value) <= most) return static_cast<double>(value);
    fail_at(one, fmt::format("{} is {}", name, value), fmt::format("at most {:g}", most));
    return 0;
  }

  void set_communication(GraphNode& one) {
    one.bytes = bounded(one, node_.bytes.value_or(0), kMostGraphBytes, "comm_size");
    if (node_.type == ChakraType::kCollective) return set_collective(one);
    const bool sends = node_.type == ChakraType::kSend;
    one.kind = sends ? NodeKind::kSend : NodeKind::kReceive;
    const auto peer = sends ? node_.target : node_.source;
    const auto own = sends ? node_.source : node_.target;
    const auto ranks = static_cast<std::uint64_t>(shared_.graph.ranks.size());
    const char* key = sends ? "comm_dst" : "comm_src";
    if (!peer) return fail_at(one, fmt::format("has no {}", key), "the rank at the other end");
    if (*peer >= ranks) {
      return fail_at(one, fmt::format("{} is rank {} of {}", key, *peer, ranks),
                     "give the files of all ranks");
    }
    if (own && *own != static_cast<std::uint64_t>(rank_)) {
      return fail_at(one,
                     fmt::format("{} is {} in the file of rank {}", sends ? "comm_src" : "comm_dst",
                                 *own, rank_),
                     "the file of the rank that sends, or that receives");
    }
    if (*peer == static_cast<std::uint64_t>(rank_)) {
      return fail_at(one, sends ? "sends to its own rank" : "receives from its own rank");
    }
    one.peer = static_cast<std::int32_t>(*peer);
    one.tag = static_cast<std::int64_t>(node_.tag.value_or(0) & 0xffffffffU);
  }

  void set_collective(GraphNode& one) {
    one.kind = NodeKind::kCollective;
    if (!node_.collective) return fail_at(one, "has no comm_type", "the kind of the collective");
    if (*node_.collective >= static_cast<std::uint64_t>(kGraphCollectives)) {
      return fail_at(one, fmt::format("comm_type {} does not exist", *node_.collective), "0 to 9");
    }
    one.collective = static_cast<GraphCollective>(*node_.collective);
    // The number of its name until all definitions are known. A named group has its own ranks,
    // whatever the dimensions (astra-sim, Sys::generate_collective).
    NamedGroup named{std::string(node_.group.substr(0, kLongestGraphWord)), {}};
    if (named.name.empty() &&
        std::ranges::find(node_.dimensions, false) != node_.dimensions.end()) {
      named.dimensions = node_.dimensions;
    }
    group_names_.push_back(std::move(named));
    one.group = static_cast<std::int32_t>(group_names_.size()) - 1;
  }

  // PyTorch's traces list their groups in a text inside a list of one: ["[{...}]"].
  void read_group_definitions() {
    std::string_view text = node_.input_values;
    if (text.find("pg_name") == text.npos || text.size() < 4) return;
    const auto parsed = parse_json(text.substr(2, text.size() - 4), file_);
    if (!parsed || !parsed->is_array()) {
      return fail(fmt::format("node {}: the definition of its groups is no list", node_.id),
                  "[{\"pg_name\": \"0\", \"ranks\": [0, 1]}]");
    }
    const auto document = JsonDocument::from(*parsed, file_);
    for (const JsonValue& item : document->root().items()) {
      ObjectReader reader(item);
      const std::string name = reader.required_text("pg_name");
      std::vector<std::int32_t>& ranks = own_groups_[name];
      ranks.clear();
      const auto listed = reader.value("ranks");
      if (!listed) continue;
      for (const JsonValue& rank : listed->items()) {
        const auto number = rank.integer(0, kMostGraphRanks - 1);
        if (number) ranks.push_back(static_cast<std::int32_t>(*number));
      }
    }
    if (!document->ok()) errors_ = document->errors();
  }

  void resolve_dependencies() {
    RankGraph& own = out();
    own.dependencies.reserve(waits_for_.size());
    for (GraphNode& node : own.nodes) {
      const auto begin = static_cast<std::size_t>(node.first_dependency);
      const auto count = static_cast<std::size_t>(node.dependencies);
      for (std::size_t i = begin; i < begin + count; ++i) {
        const auto found = places_.find(waits_for_[i]);
        if (found != places_.end()) {
          own.dependencies.push_back({found->second});
        } else if (!shared_.rules.ignore_missing) {
          return fail_at(node, fmt::format("waits for node {}, which is not there", waits_for_[i]),
                         "a trace with all its nodes; --ignore-missing takes them as ended");
        } else {
          --node.dependencies;
          ++shared_.graph.ignored_dependencies;
        }
      }
      node.first_dependency =
          static_cast<std::int32_t>(own.dependencies.size()) - node.dependencies;
    }
  }

  void resolve_groups() {
    const auto ranks = static_cast<std::int32_t>(shared_.graph.ranks.size());
    std::map<NamedGroup, std::int32_t> known;
    for (GraphNode& node : out().nodes) {
      if (node.kind != NodeKind::kCollective) continue;
      const NamedGroup& group = group_names_[static_cast<std::size_t>(node.group)];
      const auto [found, fresh] = known.try_emplace(group, kNowhere);
      if (fresh) {
        found->second = group.dimensions.empty() ? resolve(node, group.name, ranks)
                                                 : resolve_dimensions(node, group.dimensions);
      }
      if (!errors_.empty()) return;
      node.group = found->second;
      const auto size = shared_.graph.groups[static_cast<std::size_t>(node.group)].size();
      // A gather's size is what each rank brings; nccl-tests counts what each has in the end.
      if (node.collective == GraphCollective::kAllGather) {
        node.bytes *= static_cast<double>(size);
        if (node.bytes > kMostGraphBytes) {
          return fail_at(node, fmt::format("gathers {:g} bytes", node.bytes),
                         fmt::format("at most {:g}", kMostGraphBytes));
        }
      }
    }
  }

  std::int32_t resolve(const GraphNode& node, const std::string& name, std::int32_t ranks) {
    if (name.empty()) return shared_.groups.of_all(ranks);
    const auto own = own_groups_.find(name);
    const auto named = shared_.rules.groups.find(name);
    if (own == own_groups_.end() && named == shared_.rules.groups.end()) {
      fail_at(node, fmt::format("its group '{}' is not known", name),
              "give --groups FILE with its ranks: {\"" + name + "\": [0, 1]}");
      return kNowhere;
    }
    const auto& members = named != shared_.rules.groups.end() ? named->second : own->second;
    if (members.empty()) return shared_.groups.of_all(ranks);
    if (const auto last = std::ranges::max(members); last >= ranks) {
      fail_at(node, fmt::format("its group '{}' has rank {}, of {} ranks", name, last, ranks),
              "give the files of all ranks");
      return kNowhere;
    }
    if (std::ranges::find(members, rank_) == members.end()) {
      fail_at(node, fmt::format("its group '{}' is without rank {} itself", name, rank_));
      return kNowhere;
    }
    return shared_.groups.number_of(members);
  }

  // The ranks that lie where this one does in each dimension that is left out.
  std::int32_t resolve_dimensions(const GraphNode& node, const std::vector<bool>& involved) {
    const std::vector<std::int64_t>& sizes = shared_.rules.dimensions;
    if (sizes.empty() || involved.size() < sizes.size()) {
      fail_at(node,
              sizes.empty()
                  ? "involved_dim leaves out dimensions of a network that is not given"
                  : fmt::format("involved_dim has {} values, and the network {} dimensions",
                                involved.size(), sizes.size()),
              "--network with its dimensions, or pg_name with the ranks of the group in --groups");
      return kNowhere;
    }
    const auto ranks = static_cast<std::int64_t>(shared_.graph.ranks.size());
    std::int64_t all = 1;
    std::vector<std::int64_t> members{0};  // places of the involved dimensions, the first innermost
    std::int64_t own = 0;                  // of this rank in the others
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const std::size_t before = members.size();
      if (involved[d]) {
        for (std::int64_t i = 1; i < sizes[d]; ++i) {
          for (std::size_t m = 0; m < before; ++m) members.push_back(members[m] + i * all);
        }
      } else {
        own += rank_ / all % sizes[d] * all;
      }
      all *= sizes[d];
    }
    if (all != ranks) {
      fail_at(node, fmt::format("is in dimensions of {} ranks, and there are {}", all, ranks),
              "give the files of all ranks");
      return kNowhere;
    }
    std::vector<std::int32_t> group;
    for (const std::int64_t place : members) {
      group.push_back(static_cast<std::int32_t>(own + place + rank_ / all * all));
    }
    return shared_.groups.number_of(group);
  }

  // A group by its name, or by the dimensions of the network that it spans.
  struct NamedGroup {
    std::string name;
    std::vector<bool> dimensions;
    auto operator<=>(const NamedGroup&) const = default;
  };

  Shared& shared_;
  std::int32_t rank_;
  std::string file_;
  std::string begun_;  // of a message that the next piece goes on with
  bool has_head_ = false;
  ChakraNode node_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::int32_t> places_;  // by id
  std::vector<std::uint64_t> waits_for_;                    // ids
  std::vector<NamedGroup> group_names_;
  std::unordered_map<std::string, std::vector<std::int32_t>> own_groups_;
  Errors errors_;
};

// `feed` gives a rank's text to its reader.
template <class Feed>
Result<ExecutionGraph> read_ranks(std::size_t ranks, const ChakraRules& rules, Feed&& feed) {
  ExecutionGraph graph;
  graph.format = "Chakra";
  graph.ranks.resize(ranks);
  Shared shared{graph, GroupTable(graph.groups), rules, {}};
  for (std::size_t r = 0; r < ranks; ++r) {
    Errors errors = feed(shared, static_cast<std::int32_t>(r));
    if (!errors.empty()) return failure(std::move(errors));
  }
  return graph;
}

}  // namespace

Result<ExecutionGraph> read_chakra(const std::vector<std::string>& files,
                                   const ChakraRules& rules) {
  return read_ranks(files.size(), rules, [&](Shared& shared, std::int32_t rank) -> Errors {
    const std::string& file = files[static_cast<std::size_t>(rank)];
    RankReader reader(shared, rank, file);
    const auto read = read_pieces(file, {.most_bytes = kMostTraceBytes},
                                  [&](std::string_view piece) { return reader.feed(piece); });
    if (!read) return read.error();
    return reader.finish();
  });
}

Result<ExecutionGraph> chakra_of(const std::vector<std::string>& texts, const ChakraRules& rules) {
  return read_ranks(texts.size(), rules, [&](Shared& shared, std::int32_t rank) -> Errors {
    RankReader reader(shared, rank, fmt::format("rank {}", rank));
    reader.feed(texts[static_cast<std::size_t>(rank)]);
    return reader.finish();
  });
}

}  // namespace stepcast
