// SPDX-License-Identifier: Apache-2.0
#include "graphs/chakra_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "core/each.h"
#include "core/seeded_random.h"
#include "core/temporary_folder.h"
#include "graphs/chakra_writer.h"
#include "graphs/rank_files.h"
#include "graphs/read_graph.h"
#include "graphs/wire_format.h"

namespace stepcast {
namespace {

// Rank 0 of 4 of ASTRA-sim's micro-benchmark all_reduce/4npus_1MB, byte for byte
// (astra-sim/astra-sim, examples/workload/microbenchmarks, MIT).
const std::string kAstraAllReduce(
    "\x07\x0a\x05"
    "0.0.4\x48\x12\x14"
    "all_reduce_4npus_1MB\x18\x07\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00\x52\x0d\x0a\x09"
    "comm_type\x48\x00\x52\x0f\x0a\x09"
    "comm_size\x48\x80\x80\x40",
    81);

// A trace message by message.
class Trace {
 public:
  Trace() {
    WireWriter head;
    head.bytes(1, "0.0.4");
    add(head);
  }
  void add(const WireWriter& message) {
    WireWriter::append_varint(text_, message.text().size());
    text_ += message.text();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

WireWriter attribute(const std::string& name, std::uint32_t field, std::uint64_t value) {
  WireWriter out;
  out.bytes(1, name);
  out.varint(field, value);
  return out;
}

constexpr std::uint32_t kInt64 = 9;

WireWriter node(std::uint64_t id, std::uint64_t type) {
  WireWriter out;
  out.varint(1, id);
  out.bytes(2, "n" + std::to_string(id));
  out.varint(3, type);
  return out;
}

WireWriter with(WireWriter node, const std::string& name, std::uint64_t value) {
  node.bytes(10, attribute(name, kInt64, value).text());
  return node;
}

std::string text_of(const std::vector<WireWriter>& nodes) {
  Trace trace;
  for (const WireWriter& one : nodes) trace.add(one);
  return trace.text();
}

std::string error_of(const std::vector<std::string>& texts, const ChakraRules& rules = {}) {
  const auto out = chakra_of(texts, rules);
  return out ? "" : to_string(out.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ChakraReader, ReadsAstraSimsSmallestTrace) {
  const std::vector<std::string> texts(4, kAstraAllReduce);
  const auto graph = chakra_of(texts, {});
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->nodes(), 4);
  ASSERT_EQ(graph->groups.size(), 1U);
  EXPECT_EQ(graph->groups[0], (std::vector<std::int32_t>{0, 1, 2, 3}));
  const GraphNode& one = graph->ranks[3].nodes[0];
  EXPECT_EQ(one.kind, NodeKind::kCollective);
  EXPECT_EQ(one.collective, GraphCollective::kAllReduce);
  EXPECT_EQ(one.bytes, 1048576);
  EXPECT_EQ(graph->describe(3, 0), "rank 3 node 0 (all_reduce_4npus_1MB)");
}

TEST(ChakraReader, TakesNumbersOfAnyType) {
  // The value 9 as int32, int64, uint32, uint64, sint64 (zigzag 18) and fixed64.
  struct Form {
    std::uint32_t field;
    std::uint64_t value;
  };
  for (const Form& form : each_of(std::vector<Form>{{7, 9}, {9, 9}, {11, 9}, {13, 9}, {17, 18}})) {
    WireWriter one = node(1, 4);
    one.bytes(10, attribute("num_ops", form.field, form.value).text());
    const auto graph = chakra_of({text_of({one})}, {});
    ASSERT_TRUE(graph) << form.field;
    EXPECT_EQ(graph->ranks[0].nodes[0].flops, 9) << form.field;
  }
}

TEST(ChakraReader, ReadsDependenciesPackedAndOneByOne) {
  WireWriter packed = node(7, 4);
  packed.bytes(5, std::string("\x05\x06", 2));
  WireWriter single = node(8, 4);
  single.varint(4, 7);
  const auto graph = chakra_of({text_of({node(5, 4), node(6, 4), packed, single})}, {});
  ASSERT_TRUE(graph) << to_string(graph.error());
  const RankGraph& rank = graph->ranks[0];
  ASSERT_EQ(rank.dependencies_of(rank.nodes[2]).size(), 2U);
  EXPECT_EQ(rank.dependencies_of(rank.nodes[2])[1].node, 1);
  ASSERT_EQ(rank.dependencies_of(rank.nodes[3]).size(), 1U);
  EXPECT_EQ(rank.dependencies_of(rank.nodes[3])[0].node, 2);
}

TEST(ChakraReader, CountsAGatherByWhatEachRankHasInTheEnd) {
  const std::string text = text_of({with(with(node(1, 7), "comm_type", 2), "comm_size", 1000)});
  const auto graph = chakra_of({text, text, text}, {});
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->ranks[0].nodes[0].bytes, 3000);
}

TEST(ChakraReader, FindsGroupsInTheFileOfGroupsAndInTheTrace) {
  WireWriter collective = with(with(node(2, 7), "comm_type", 0), "comm_size", 8);
  WireWriter name;
  name.bytes(1, "pg_name");
  name.bytes(29, "1");
  collective.bytes(10, name.text());
  const std::string named = text_of({collective});
  ChakraRules rules;
  rules.groups["1"] = {1, 0};
  const auto by_file = chakra_of({named, named}, rules);
  ASSERT_TRUE(by_file) << to_string(by_file.error());
  EXPECT_EQ(by_file->groups[0], (std::vector<std::int32_t>{1, 0}));

  WireWriter inputs;
  inputs.bytes(1, R"(["[{"pg_name": "1", "ranks": []}]"])");
  WireWriter definition = node(1, 1);
  definition.bytes(8, inputs.text());
  const std::string defined = text_of({definition, collective});
  const auto by_trace = chakra_of({defined, defined}, {});
  ASSERT_TRUE(by_trace) << to_string(by_trace.error());
  EXPECT_EQ(by_trace->groups[0], (std::vector<std::int32_t>{0, 1}));  // no ranks: all of them

  EXPECT_TRUE(has(error_of({named, named}), "its group '1' is not known"));
  EXPECT_TRUE(has(error_of({named, named}), "--groups"));
}

// Chakra's converter of PyTorch's traces writes the call stack as control dependencies.
TEST(ChakraReader, WaitsForDataAloneWhereThatIsAsked) {
  WireWriter third = node(3, 4);
  third.varint(4, 1);
  third.varint(5, 2);
  const std::vector<std::string> texts{text_of({node(1, 4), node(2, 4), third})};
  const auto awaited = [&](const ChakraRules& rules) {
    const auto graph = chakra_of(texts, rules);
    EXPECT_TRUE(graph) << to_string(graph.error());
    std::vector<std::int32_t> out;
    for (const auto& one : graph->ranks[0].dependencies_of(graph->ranks[0].nodes[2])) {
      out.push_back(one.node);
    }
    return out;
  };
  EXPECT_EQ(awaited({}), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(awaited({.data_alone = true}), (std::vector<std::int32_t>{1}));
}

// STORAGE_NODE, BATCH_NODE and CHECKPOINT_NODE of et_def.proto.
TEST(ChakraReader, ReadsNodesOfStorage) {
  std::vector<WireWriter> nodes;
  for (const std::uint64_t type : {8, 9, 10}) {
    nodes.push_back(node(type, type));
    nodes.back().varint(7, 25);
  }
  const auto graph = chakra_of({text_of(nodes)}, {});
  ASSERT_TRUE(graph) << to_string(graph.error());
  for (const GraphNode& one : each_of(graph->ranks[0].nodes)) {
    EXPECT_EQ(one.kind, NodeKind::kMemory) << one.id;
    EXPECT_NEAR(one.duration.value(), 25e-6, 1e-12) << one.id;
  }
}

// Six ranks in three columns of two: a collective in the first dimension is among the two of a
// column, one in the second among the three of a row.
TEST(ChakraReader, ACollectiveMayLeaveOutDimensions) {
  const auto in_dimensions = [](const std::string& truths) {
    WireWriter list, value, out = with(with(node(1, 7), "comm_type", 0), "comm_size", 8);
    list.packed(1, truths);
    value.bytes(1, "involved_dim");
    value.bytes(28, list.text());
    out.bytes(10, value.text());
    return std::vector<std::string>(6, text_of({out}));
  };
  const std::string first("\1\0", 2), second("\0\1", 2), both("\1\1", 2);
  const ChakraRules network{.dimensions = {2, 3}};
  const auto group_of = [&](const std::string& truths, std::size_t rank) {
    const auto graph = chakra_of(in_dimensions(truths), network);
    EXPECT_TRUE(graph) << to_string(graph.error());
    return graph->groups[static_cast<std::size_t>(graph->ranks[rank].nodes[0].group)];
  };
  EXPECT_EQ(group_of(first, 3), (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(group_of(second, 3), (std::vector<std::int32_t>{1, 3, 5}));
  EXPECT_EQ(group_of(both, 3), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(has(error_of(in_dimensions(first)), "of a network that is not given"));
  EXPECT_TRUE(has(error_of(in_dimensions(first), {.dimensions = {2, 3, 4}}),
                  "involved_dim has 2 values, and the network 3 dimensions"));
  EXPECT_TRUE(has(error_of(in_dimensions(first), {.dimensions = {2, 4}}),
                  "is in dimensions of 8 ranks, and there are 6"));
}

TEST(ChakraReader, NamesFileNodeAndFix) {
  const WireWriter send = with(with(node(4, 5), "comm_dst", 7), "comm_size", 8);
  WireWriter waits = node(3, 4);
  waits.varint(5, 99);
  WireWriter long_one = node(6, 4);
  long_one.varint(7, ~std::uint64_t{0});
  struct Case {
    std::string text, error;
  };
  const std::vector<Case> cases{
      {"", "is empty"},
      {"\x1f\x8b and more", "unpack it first"},
      {"num_rank", "no Chakra execution trace"},
      {text_of({node(1, 4)}).substr(0, 12), "ends inside a node: the file is cut"},
      {text_of({node(1, 11)}), "node 1, behind node 0: its type 11 does not exist"},
      {text_of({node(1, 4), node(1, 4)}), "node 1 (n1): stands twice"},
      {text_of({waits}), "node 3 (n3): waits for node 99, which is not there"},
      {text_of({send}), "node 4 (n4): comm_dst is rank 7 of 1"},
      {text_of({node(4, 5)}), "has no comm_dst"},
      {text_of({node(5, 7)}), "has no comm_type"},
      {text_of({with(node(5, 7), "comm_type", 12)}), "comm_type 12 does not exist"},
      {text_of({with(node(5, 4), "num_ops", ~std::uint64_t{0})}), "num_ops is below 0"},
      {text_of({long_one}), "node 6 (n6): lasts 18446744073709551615 us"}};
  for (const Case& one : each_of(cases)) {
    EXPECT_TRUE(has(error_of({one.text}), one.error)) << error_of({one.text});
    EXPECT_TRUE(has(error_of({one.text}), "rank 0")) << error_of({one.text});
  }
}

TEST(ChakraReader, MissingNodesCountAsEndedWhereThatIsAsked) {
  WireWriter waits = node(3, 4);
  waits.varint(5, 99);
  waits.varint(5, 2);
  ChakraRules rules;
  rules.ignore_missing = true;
  const auto graph = chakra_of({text_of({node(2, 4), waits})}, rules);
  ASSERT_TRUE(graph) << to_string(graph.error());
  EXPECT_EQ(graph->ignored_dependencies, 1);
  const RankGraph& rank = graph->ranks[0];
  ASSERT_EQ(rank.dependencies_of(rank.nodes[1]).size(), 1U);
  EXPECT_EQ(rank.dependencies_of(rank.nodes[1])[0].node, 0);
}

ExecutionGraph small_graph() {
  ExecutionGraph graph;
  graph.ranks.resize(2);
  graph.groups = {{0, 1}, {0}};
  graph.names = {"attention"};
  RankGraph& rank = graph.ranks[0];
  GraphNode work;
  work.kind = NodeKind::kCompute;
  work.name = 0;
  work.duration = Seconds(1.4e-6);
  work.flops = 5;
  rank.nodes.assign(5, work);
  rank.nodes[1].dependencies = 1;
  rank.dependencies = {{0}};
  rank.nodes[2].kind = NodeKind::kCollective;
  rank.nodes[2].collective = GraphCollective::kAllGather;
  rank.nodes[2].group = 0;
  rank.nodes[2].bytes = 64;
  rank.nodes[3] = rank.nodes[2];
  rank.nodes[3].group = 1;
  rank.nodes[4].kind = NodeKind::kSend;
  rank.nodes[4].peer = 1;
  rank.nodes[4].tag = 3;
  rank.nodes[4].bytes = 7;
  return graph;
}

TEST(ChakraWriter, WritesWhatTheReaderReads) {
  const ExecutionGraph graph = small_graph();
  ChakraRules rules;
  rules.groups["2"] = {0};
  const auto read = chakra_of({chakra_text(graph, 0), chakra_text(graph, 1)}, rules);
  ASSERT_TRUE(read) << to_string(read.error());
  const RankGraph& rank = read->ranks[0];
  ASSERT_EQ(rank.nodes.size(), 5U);
  // 1.4 us twice are 1 and 2 whole ones: what the first loses, the second has.
  EXPECT_NEAR(rank.nodes[0].duration.value(), 1e-6, 1e-15);
  EXPECT_NEAR(rank.nodes[1].duration.value(), 2e-6, 1e-15);
  EXPECT_EQ(rank.nodes[0].flops, 5);
  EXPECT_EQ(read->names[0], "attention");
  EXPECT_EQ(rank.dependencies_of(rank.nodes[1])[0].node, 0);
  EXPECT_EQ(rank.nodes[2].bytes, 64);
  EXPECT_EQ(read->groups[static_cast<std::size_t>(rank.nodes[2].group)].size(), 2U);
  EXPECT_EQ(read->groups[static_cast<std::size_t>(rank.nodes[3].group)].size(), 1U);
  EXPECT_EQ(rank.nodes[4].peer, 1);
  EXPECT_EQ(rank.nodes[4].tag, 3);
  EXPECT_EQ(rank.nodes[4].bytes, 7);
}

// Any byte may be another: the reader ends with a graph or with words, whatever it meets, and the
// pieces in which a file comes make no difference.
TEST(ChakraReader, SurvivesMutatedBytes) {
  const std::string seed = chakra_text(small_graph(), 0);
  SeededRandom random(42);
  ChakraRules rules;
  rules.groups["2"] = {0};
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed;
    for (std::int64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())));
      switch (random.below(4)) {
        case 0:
          text.resize(at + 1);
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text[at] = static_cast<char>(random.below(256));
      }
      if (text.empty()) text = "x";
    }
    const auto read = chakra_of({text, chakra_text(small_graph(), 1)}, rules);
    if (!read) {
      ++refused;
      ASSERT_FALSE(to_string(read.error()).empty());
    }
  }
  EXPECT_GT(refused, 5000);
}

TEST(RankFiles, AFolderAPrefixAndFilesAreOneSet) {
  const testing::TemporaryFolder folder;
  for (int r = 0; r < 3; ++r) folder.write("app." + std::to_string(r) + ".et", kAstraAllReduce);
  folder.write("readme.txt", "x");
  const auto by_folder = files_by_rank({folder / ""});
  ASSERT_TRUE(by_folder) << to_string(by_folder.error());
  ASSERT_EQ(by_folder->size(), 3U);
  const auto by_prefix = files_by_rank({folder / "app"});
  ASSERT_TRUE(by_prefix) << to_string(by_prefix.error());
  EXPECT_EQ(by_prefix->size(), 3U);
  const auto by_file =
      files_by_rank({folder / "app.1.et", folder / "app.2.et", folder / "app.0.et"});
  ASSERT_TRUE(by_file) << to_string(by_file.error());
  EXPECT_EQ((*by_file)[2], folder / "app.2.et");

  const auto gap = files_by_rank({folder / "app.0.et", folder / "app.2.et"});
  ASSERT_FALSE(gap);
  EXPECT_TRUE(has(to_string(gap.error()), "the file of rank 1 is missing"));
  const auto none = files_by_rank({folder / "other"});
  ASSERT_FALSE(none);
  EXPECT_TRUE(has(to_string(none.error()), "there is no such file"));
}

TEST(ReadGraph, TellsTheFormsApart) {
  const testing::TemporaryFolder folder;
  folder.write("app.0.et", kAstraAllReduce);
  folder.write("app.goal", "// two\nnum_ranks 1\nrank 0 {\ncalc 5\n}\n");
  folder.write("app.bin", std::string("\x7f\x10\0\0\0\0\0\0\x01\0\0\0", 12));
  GraphSource source;
  source.words = {folder / "app.0.et"};
  EXPECT_STREQ(read_graph(source)->format, "Chakra");
  source.words = {folder / "app.goal"};
  EXPECT_STREQ(read_graph(source)->format, "GOAL");
  source.words = {folder / "app.bin"};
  EXPECT_TRUE(has(to_string(read_graph(source).error()), "binary form"));
  source.words = {folder / "app.goal", folder / "app.0.et"};
  EXPECT_TRUE(has(to_string(read_graph(source).error()), "give this file alone"));
}

}  // namespace
}  // namespace stepcast
