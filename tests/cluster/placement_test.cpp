// SPDX-License-Identifier: Apache-2.0
// docs/formats/cluster.md, "Placement".
#include "cluster/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_from.h"
#include "cluster/host_list.h"
#include "cluster/slurm_topology.h"
#include "cluster/write_cluster.h"
#include "core/json_tree.h"
#include "core/seeded_random.h"
#include "core/temporary_folder.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

using Names = std::vector<std::string>;

TEST(HostList, ExpandsBracketsInTheirOrder) {
  EXPECT_EQ(expand_hosts("node[4-5,0-1],login").value(),
            (Names{"node4", "node5", "node0", "node1", "login"}));
  EXPECT_EQ(expand_hosts("r[01-02]n[9-10]").value(), (Names{"r01n9", "r01n10", "r02n9", "r02n10"}));
  EXPECT_EQ(expand_hosts("x[08-11]a").value(), (Names{"x08a", "x09a", "x10a", "x11a"}));
  EXPECT_TRUE(expand_hosts("").value().empty());
}

TEST(HostList, RefusesWhatIsNoList) {
  for (const char* bad : {"n[3-1]", "n[1", "n[]", "n[a]", "n[-1]", "n[0-999999999]",
                          "n[0-9999]m[0-9999]", "n[1-2-3]", "n[99999999999999999999]"}) {
    EXPECT_FALSE(expand_hosts(bad).has_value()) << bad;
  }
}

TEST(HostList, IsWrittenAsItIsRead) {
  for (const char* text : {"node[4-7,0-3]", "a1,b[1-2],a1", "x[08-11]", "n[9-10]", "login,n[1,3]",
                           "n[001-010]", "n[1,01]"}) {
    const Names names = expand_hosts(text).value();
    EXPECT_EQ(expand_hosts(compress_hosts(names)).value(), names) << text;
  }
  EXPECT_EQ(compress_hosts({"node4", "node5", "node6", "node0", "node2"}), "node[4-6,0,2]");
  EXPECT_EQ(compress_hosts({"a", "b7"}), "a,b7");
}

// Two leaves of four nodes under a spine, as in the manual of topology.conf.
constexpr const char* kTree = R"(# leaves
SwitchName=s0 Nodes=tux[0-3] LinkSpeed=900
switchname=s1 nodes=tux[4-5],\
  tux[6-7]
SwitchName=s2 Switches=s[0-1]
)";

TEST(SlurmTopology, HasTheNodesOfEachLeaf) {
  const SlurmTopology tree = parse_slurm_topology(kTree, "topology.conf").value();
  ASSERT_EQ(tree.leaves.size(), 2u);
  EXPECT_EQ(tree.leaves[0].nodes, (Names{"tux0", "tux1", "tux2", "tux3"}));
  EXPECT_EQ(tree.leaves[1].nodes, (Names{"tux4", "tux5", "tux6", "tux7"}));
  EXPECT_EQ(tree.switches_above, 1u);
  EXPECT_FALSE(tree.are_blocks);
  const SlurmTopology blocks =
      parse_slurm_topology("BlockName=a Nodes=n[0-1]\nBlockName=b Nodes=n[2-3]\nBlockSizes=2\n", "")
          .value();
  EXPECT_EQ(blocks.leaves.size(), 2u);
  EXPECT_TRUE(blocks.are_blocks);
}

TEST(SlurmTopology, RefusesWhatItDoesNotKnow) {
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n1", "n1 stands under a and b"},
           {"SwitchName=a Nodes=n[", "line 1"},
           {"SwitchName=a Nodes=n0\nSwitchName=b Switches=c", "no switch 'c'"},
           {"SwitchName=a Hosts=n0", "'Hosts' is not known"},
           {"SwitchName", "no key with a value"},
           {"# nothing", "no switch or block"}}) {
    const auto parsed = parse_slurm_topology(text, "topology.conf");
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(to_string(parsed.error()).find(word), std::string::npos) << to_string(parsed.error());
  }
}

// Texts of pieces that mean something, in any order: read, or refused in words.
TEST(SlurmTopology, TakesOrRefusesWhateverItIsGiven) {
  const std::vector<std::string> pieces = {
      "[",           "]",         "-",
      ",",           "0",         "19",
      "00",          "n",         "r",
      "=",           "\\\n",      "\n",
      "#",           " ",         "\t",
      "Nodes=",      "n[0-3]",    "SwitchName=a Nodes=m[0-3]\n",
      "SwitchName=", "Switches=", "BlockName=",
      "BlockSizes=", "99999999",  "\r\n"};
  SeededRandom random(20261129);
  int read = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text;
    for (std::int64_t count = 1 + random.below(14); count > 0; --count) {
      text +=
          pieces[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(pieces.size())))];
    }
    const auto hosts = expand_hosts(text);
    if (hosts) {
      EXPECT_EQ(expand_hosts(compress_hosts(*hosts)).value(), *hosts) << text;
    } else {
      EXPECT_FALSE(hosts.error().front().message.empty()) << text;
    }
    const auto topology = parse_slurm_topology(text, "topology.conf");
    ++(topology ? read : refused);
    if (!topology) {
      EXPECT_FALSE(topology.error().front().message.empty()) << text;
    }
  }
  EXPECT_GT(read, 20);
  EXPECT_GT(refused, 1000);
}

Cluster placed(const std::string& place, const std::string& more = "") {
  return cluster_from(fmt::format(
      R"({{"base": "dgx-h100", "nodes": 8, "nodes_per_leaf_group": 4, "place": "{}"{}}})", place,
      more));
}

double spine_links_of_ring(const Cluster& cluster) {
  double sum = 0;
  for (std::size_t node = 0; node < 8; ++node) {
    for (const LinkShare& share :
         cluster.topology.route(DeviceId(8 * node), DeviceId(8 * ((node + 1) % 8)))) {
      const LinkKind kind = cluster.topology.links()[share.link.index()].kind;
      if (kind == LinkKind::kFabric) sum += share.fraction;
    }
  }
  return sum;
}

// A ring over eight nodes leaves each of two leaves once where they stand in order, which is up and
// down twice, and at each of its eight hops where neighbours alternate.
TEST(Placement, RingsCrossTheSpineAsOftenAsNeighboursAreApart) {
  const Cluster in_order = placed("node[0-7]"), other = placed("node[4-7,0-3]");
  EXPECT_DOUBLE_EQ(spine_links_of_ring(in_order), 2 * 2);
  EXPECT_DOUBLE_EQ(spine_links_of_ring(other), 2 * 2);
  const Cluster apart = placed("node[0,4,1,5,2,6,3,7]");
  EXPECT_DOUBLE_EQ(spine_links_of_ring(apart), 8 * 2);
  EXPECT_TRUE(is_in_order(in_order.spec));
  EXPECT_FALSE(is_in_order(apart.spec));
}

TEST(Placement, InOrderIsTheClusterWithoutIt) {
  const Cluster without =
      cluster_from(R"({"base": "dgx-h100", "nodes": 8, "nodes_per_leaf_group": 4})");
  EXPECT_EQ(json_text(graph_file(placed("node[0-7]"))), json_text(graph_file(without)));
}

// Nodes of a larger machine: the fourth stands under the third leaf, which has no other.
TEST(Placement, TakesPlacesThatAreFarApart) {
  const Cluster cluster =
      cluster_from(R"({"base": "dgx-h100", "nodes": 4, "nodes_per_leaf_group": 4,
      "place": ["node[0-2]", "node9"]})");
  std::set<std::string> leaves;
  for (const LinkShare& share : cluster.topology.route(DeviceId(0), DeviceId(24))) {
    leaves.insert(cluster.topology.name(cluster.topology.links()[share.link.index()].to));
  }
  EXPECT_TRUE(leaves.contains("leaf0") && leaves.contains("leaf16"));
}

TEST(Placement, OfGpusNumbersRanksAlongTheList) {
  const Cluster cluster = cluster_from(R"({"base": "dgx-h100", "nodes": 2,
      "place": "node[0-1]/gpu[0,2,4,6],node[0-1]/gpu[1,3,5,7]"})");
  const auto name = [&](std::size_t rank) {
    return cluster.topology.name(cluster.topology.gpus()[rank]);
  };
  EXPECT_EQ(name(0), "node0/gpu0");
  EXPECT_EQ(name(1), "node0/gpu2");
  EXPECT_EQ(name(4), "node1/gpu0");
  EXPECT_EQ(name(15), "node1/gpu7");
  EXPECT_EQ(cluster.node_of(DeviceId(4)), 1);
  const Cluster cut = cluster_from(R"({"base": "dgx-h100", "nodes": 2, "fail": "node0/gpu2",
      "place": "node[0-1]/gpu[0,2,4,6],node[0-1]/gpu[1,3,5,7]"})");
  EXPECT_EQ(cut.topology.name(cut.topology.gpus()[1]), "node0/gpu4");
  EXPECT_EQ(cut.gpus(), 15);
}

TEST(Placement, OfSlurmIsByTheSwitchesOfItsTopology) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "topology.conf", hosts = folder / "hosts.txt";
  std::ofstream(file) << kTree;
  std::ofstream(hosts) << "# my nodes\ntux6 slots=8\ntux1 slots=8\n\ntux4\n";
  const auto with = [&](const std::string& place) {
    return fmt::format(
        R"({{"base": "dgx-h100", "nodes": 3, "slurm_topology": "{}", "place": "{}"}})", file,
        place);
  };
  for (const std::string& place : {std::string("tux[6,1,4]"), hosts}) {
    const Cluster cluster = cluster_from(with(place));
    EXPECT_EQ(cluster.spec.nodes_per_leaf_group, 4);
    EXPECT_EQ(cluster.spec.fabric.places, (std::vector<std::int32_t>{1, 4, 6}));
  }
  const Cluster first = cluster_from(
      fmt::format(R"({{"base": "dgx-h100", "nodes": 5, "slurm_topology": "{}"}})", file));
  EXPECT_EQ(first.spec.fabric.places, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  const Errors unknown = read(with("tux[1-2,9]")).errors;
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].message, "tux9 stands under no switch of the file");
}

// Four leaves of two nodes under two spines, which the file names in another order than the leaves.
TEST(Placement, OfSlurmTakesSpinesAsPods) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "topology.conf";
  std::ofstream(file) << "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\n"
                         "SwitchName=c Nodes=n[4-5]\nSwitchName=d Nodes=n[6-7]\n"
                         "SwitchName=p Switches=a,c\nSwitchName=q Switches=b,d\n"
                         "SwitchName=top Switches=p,q\n";
  const Cluster cluster = cluster_from(
      fmt::format(R"({{"base": "dgx-h100", "nodes": 8, "slurm_topology": "{}"}})", file));
  EXPECT_EQ(cluster.spec.pod_nodes, 4);
  EXPECT_EQ(cluster.spec.fabric.places, (std::vector<std::int32_t>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(Placement, OfBlocksKeepsNvlinkDomainsTogether) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "topology.conf";
  std::ofstream(file) << "BlockName=r0 Nodes=n[0-17]\nBlockName=r1 Nodes=n[18-35]\n";
  const auto with = [&](const std::string& place, int span) {
    return fmt::format(R"({{"base": "gb200-nvl72", "nodes": 18, "slurm_topology": "{}",
        "place": "{}", "nvlink_domain_nodes": {}}})",
                       file, place, span);
  };
  EXPECT_TRUE(read(with("n[0-8,18-26]", 9)).errors.empty());
  const Errors errors = read(with("n[0-9,18-25]", 9)).errors;
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].message,
            "nodes 9 and 10 are of one NVLink domain and stand in blocks r0 and r1");
}

TEST(Placement, IsWrittenAndReadBack) {
  for (const char* keys : {R"("place": "node[4-7,0-3]")", R"("place": "node[9,13,0-5]")",
                           R"("place": "node[0-7]/gpu[0-3],node[0-7]/gpu[4-7]")"}) {
    const Cluster cluster = cluster_from(
        std::string(R"({"base": "dgx-h100", "nodes": 8, "nodes_per_leaf_group": 2, )") + keys +
        "}");
    const Cluster again = cluster_from(json_text(to_json(cluster)));
    EXPECT_EQ(json_text(graph_file(again)), json_text(graph_file(cluster))) << keys;
    EXPECT_EQ(to_json(again)["place"], to_json(cluster)["place"]);
  }
}

TEST(Placement, BadOnesAreRefusedNamingTheKey) {
  for (const auto& [place, word] : std::vector<std::pair<std::string, std::string>>{
           {"node[0-2]", "names 3 nodes, and the cluster has 4"},
           {"node[0-2,2]", "names node2 twice"},
           {"node[0-2],rack", "'rack' is no node by its number"},
           {"node[0-2", "bracket"},
           {"node[0-2],node131072", "no node by its number"},
           {"node[0-3]/gpu[0-6]", "names 28 GPUs, and the cluster has 32"},
           {"node[0-3]/gpu[0-6,8]", "'node0/gpu8' is no GPU"},
           {"none.txt", "none.txt"},
           {"", "names no node"}}) {
    const Errors errors =
        read(fmt::format(R"({{"base": "dgx-h100", "nodes": 4, "place": "{}"}})", place)).errors;
    ASSERT_EQ(errors.size(), 1u) << place << to_string(errors);
    EXPECT_EQ(errors[0].path, "cluster.place");
    EXPECT_NE(errors[0].message.find(word), std::string::npos) << to_string(errors);
  }
}

}  // namespace
}  // namespace stepcast
