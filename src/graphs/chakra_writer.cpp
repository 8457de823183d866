// SPDX-License-Identifier: Apache-2.0
#include "graphs/chakra_writer.h"

#include <cmath>
#include <map>
#include <string_view>

#include "graphs/chakra_node.h"
#include "graphs/wire_format.h"

namespace stepcast {
namespace {

constexpr std::string_view kVersion = "0.0.4";  // of the schema, as ASTRA-sim's examples say it

class RankWriter {
 public:
  RankWriter(const ExecutionGraph& graph, std::int32_t rank)
      : graph_(graph), own_(graph.ranks[static_cast<std::size_t>(rank)]), rank_(rank) {}

  std::string write() {
    message_.bytes(1, kVersion);
    end_message();
    for (std::size_t i = 0; i < own_.nodes.size(); ++i) write_node(own_.nodes[i], i);
    return std::move(out_);
  }

 private:
  void end_message() {
    WireWriter::append_varint(out_, message_.text().size());
    out_ += message_.text();
    message_.clear();
  }

  void attribute(std::string_view name, ChakraValue field, std::uint64_t value) {
    value_.clear();
    value_.bytes(1, name);
    value_.varint(static_cast<std::uint32_t>(field), value);
    message_.bytes(10, value_.text());
  }

  static ChakraType type_of(NodeKind kind) {
    switch (kind) {
      case NodeKind::kSend:
        return ChakraType::kSend;
      case NodeKind::kReceive:
        return ChakraType::kReceive;
      case NodeKind::kCollective:
        return ChakraType::kCollective;
      case NodeKind::kNothing:
        return ChakraType::kInvalid;
      case NodeKind::kMemory:
        return ChakraType::kMemoryLoad;
      default:
        return ChakraType::kCompute;
    }
  }

  // Whole microseconds, such that all of a lane together are right to half of one.
  std::uint64_t rounded_us(const GraphNode& node) {
    double& owed = owed_us_[{node.kind, node.lane}];
    const double exact = node.duration.value() * 1e6 + owed;
    const double whole = std::max(0.0, std::round(exact));
    owed = exact - whole;
    return static_cast<std::uint64_t>(whole);
  }

  void write_node(const GraphNode& node, std::size_t place) {
    if (place > 0) message_.varint(1, place);  // 0 is what is not written
    if (node.name != kNowhere) message_.bytes(2, graph_.names[static_cast<std::size_t>(node.name)]);
    message_.varint(3, static_cast<std::uint64_t>(type_of(node.kind)));
    values_.clear();
    for (const GraphDependency& one : own_.dependencies_of(node)) {
      WireWriter::append_varint(values_, static_cast<std::uint64_t>(one.node));
    }
    if (!values_.empty()) message_.packed(5, values_);
    const std::uint64_t duration = node.duration.value() > 0 ? rounded_us(node) : 0;
    if (duration > 0) message_.varint(7, duration);
    attribute("is_cpu_op", ChakraValue::kBool, node.kind == NodeKind::kHost ? 1 : 0);
    if (node.kind == NodeKind::kCollective) write_collective(node);
    if (node.kind == NodeKind::kSend || node.kind == NodeKind::kReceive) write_message(node);
    const bool works = node.kind == NodeKind::kCompute || node.kind == NodeKind::kMemory;
    if (works && node.flops > 0) {
      attribute("num_ops", ChakraValue::kInt64, static_cast<std::uint64_t>(node.flops));
    }
    if (works && node.bytes > 0) {
      attribute("tensor_size", ChakraValue::kUint64, static_cast<std::uint64_t>(node.bytes));
    }
    end_message();
  }

  void write_collective(const GraphNode& node) {
    const auto& group = graph_.groups[static_cast<std::size_t>(node.group)];
    double bytes = node.bytes;
    if (node.collective == GraphCollective::kAllGather) bytes /= static_cast<double>(group.size());
    attribute("comm_type", ChakraValue::kInt64, static_cast<std::uint64_t>(node.collective));
    attribute("comm_size", ChakraValue::kInt64, static_cast<std::uint64_t>(std::llround(bytes)));
    if (group.size() == graph_.ranks.size()) return;
    value_.clear();
    value_.bytes(1, "pg_name");
    value_.bytes(static_cast<std::uint32_t>(ChakraValue::kText), std::to_string(node.group + 1));
    message_.bytes(10, value_.text());
  }

  void write_message(const GraphNode& node) {
    const bool sends = node.kind == NodeKind::kSend;
    const auto rank = static_cast<std::uint64_t>(rank_),
               peer = static_cast<std::uint64_t>(node.peer);
    attribute("comm_src", ChakraValue::kInt32, sends ? rank : peer);
    attribute("comm_dst", ChakraValue::kInt32, sends ? peer : rank);
    attribute("comm_size", ChakraValue::kInt64,
              static_cast<std::uint64_t>(std::llround(node.bytes)));
    attribute("comm_tag", ChakraValue::kInt32, static_cast<std::uint64_t>(node.tag));
  }

  const ExecutionGraph& graph_;
  const RankGraph& own_;
  std::int32_t rank_;
  std::map<std::pair<NodeKind, std::uint16_t>, double> owed_us_;
  WireWriter message_, value_;
  std::string values_, out_;
};

}  // namespace

std::string chakra_text(const ExecutionGraph& graph, std::int32_t rank) {
  return RankWriter(graph, rank).write();
}

}  // namespace stepcast
