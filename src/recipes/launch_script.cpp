// SPDX-License-Identifier: Apache-2.0
// Sources of what is set: docs.nvidia.com NCCL user guide, env.html (NCCL_CROSS_NIC 0: a ring or
// tree stays on its rail, for rail-optimised fabrics; NCCL_NVLS_ENABLE; NCCL_IB_HCA;
// NCCL_SOCKET_IFNAME), aws-ofi-nccl's README (FI_PROVIDER), docs.pytorch.org elastic/run.html
// (--node-rank is kept by the static rendezvous alone; c10d numbers nodes as they arrive),
// slurm.schedmd.com sbatch.html (--switches, --segment, --ntasks-per-node, --gpus-per-node,
// --exclusive).
#include "recipes/launch_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "core/id.h"
#include "core/text/escape.h"
#include "layout/scenario.h"
#include "recipes/left_open.h"

namespace stepcast {
namespace {

std::string slurm_header(const ClusterSpec& cluster, const World& world) {
  const std::int64_t leaves = cluster.nodes_per_leaf_group;
  std::string out = fmt::format(
      "#SBATCH --job-name=stepcast\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n",
      world.nodes, world.gpus_per_node);
  if (world.nodes > 1 && leaves > 0 && cluster.fabric.kind == FabricKind::kFatTree) {
    out += fmt::format("#SBATCH --switches={}\n", (world.nodes + leaves - 1) / leaves);
  }
  // A rack of NVLink is a block of Slurm's topology, of which each segment has one.
  if (const auto rack = std::min(cluster.nvlink_domain_nodes, world.nodes); rack > 1) {
    out += fmt::format("#SBATCH --segment={}\n", rack);
  }
  if (!cluster.fabric.hosts.empty()) {
    out += fmt::format("#SBATCH --nodelist={}\n", in_comment(place_text(cluster)));
  }
  return out + "# Also name your #SBATCH --account, --partition and --time.\n";
}

std::string network_environment(const ClusterSpec& cluster, const World& world) {
  if (world.nodes == 1) return "";
  std::string out =
      "# NCCL. The names of network devices are your machines' own (ip link, ibv_devices).\n";
  out += "# export NCCL_SOCKET_IFNAME=eth0\n";
  if (speaks_verbs(cluster.network)) {
    out += "# export NCCL_IB_HCA=mlx5\n";
    if (cluster.network == Network::kRoce) out += "# export NCCL_IB_GID_INDEX=3\n";
  }
  if (cluster.network == Network::kEfa) out += "export FI_PROVIDER=efa\n";
  const bool rails = cluster.rail_optimised && cluster.fabric.kind == FabricKind::kFatTree;
  if (rails && cluster.nics_per_node > 1) {
    out += "export NCCL_CROSS_NIC=0  # each NIC has its own rail\n";
  }
  if (cluster.nvls && !cluster.nccl.nvls) out += "export NCCL_NVLS_ENABLE=1\n";
  return out + "\n";
}

// A scenario says this of NCCL's environment. Its version is that of the image.
std::string nccl_environment(const NcclSettings& settings) {
  std::string out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += fmt::format("export {}={}\n", name, shell_word(value));
  };
  add("NCCL_ALGO", settings.algorithms);
  add("NCCL_PROTO", settings.protocols);
  if (settings.max_channels > 0)
    add("NCCL_MAX_NCHANNELS", fmt::format("{}", settings.max_channels));
  if (settings.min_ctas > 0) add("NCCL_MIN_CTAS", fmt::format("{}", settings.min_ctas));
  if (settings.nvls) add("NCCL_NVLS_ENABLE", *settings.nvls ? "1" : "0");
  return out.empty() ? out : out + "\n";
}

// The host of rank 0 first, as the placement has them.
std::string hosts_in_order(const std::vector<std::string>& hosts) {
  return fmt::format(
      "# Nodes in the order of their ranks, as cluster.place has them.\n"
      "export HOSTS={}\nMASTER_ADDR=\"${{HOSTS%% *}}\"\n",
      shell_word(fmt::format("{}", fmt::join(hosts, " "))));
}

std::string rendezvous(Launcher launcher, const std::vector<std::string>& hosts) {
  if (launcher == Launcher::kSlurm && !hosts.empty()) {
    return hosts_in_order(hosts) +
           fmt::format("MASTER_PORT=\"${{MASTER_PORT:-{}}}\"\n", kRendezvousPort);
  }
  if (launcher == Launcher::kSlurm) {
    return fmt::format(
        "# Nodes in the order of the allocation: with Slurm's topology plugin neighbours stand\n"
        "# together, as the rank map supposes.\n"
        "MASTER_ADDR=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\"\n"
        "MASTER_PORT=\"${{MASTER_PORT:-{}}}\"\n",
        kRendezvousPort);
  }
  std::string out = hosts.empty()
                        ? "MASTER_ADDR=\"${MASTER_ADDR:-localhost}\"  # the node of rank 0\n"
                        : hosts_in_order(hosts);
  out += fmt::format("MASTER_PORT=\"${{MASTER_PORT:-{}}}\"\n", kRendezvousPort);
  out += "NODE_RANK=\"${NODE_RANK:-0}\"  # 0 to NNODES - 1, neighbours next to each other\n";
  return out;
}

// Torchrun's own arguments. Under Slurm the node's rank is known only where a task runs.
std::string launch_arguments(Launcher launcher) {
  std::string out =
      "LAUNCH_ARGS=(\n  --nnodes=\"$NNODES\"\n  --nproc-per-node=\"$GPUS_PER_NODE\"\n"
      "  --master-addr=\"$MASTER_ADDR\"\n  --master-port=\"$MASTER_PORT\"\n";
  if (launcher != Launcher::kSlurm) out += "  --node-rank=\"$NODE_RANK\"\n";
  return out + ")\n";
}

// A node's rank is its place among HOSTS, where these are stated.
constexpr const char* kStartByHosts =
    "srun --kill-on-bad-exit=1 bash -c 'rank=0; for host in $HOSTS; do "
    "[ \"$host\" = \"$SLURMD_NODENAME\" ] && break; rank=$((rank + 1)); done; "
    "exec torchrun --node-rank=\"$rank\" \"$@\"' torchrun \\\n  ";

std::string start(Launcher launcher, const LaunchProgram& program, bool has_hosts) {
  std::string out = launcher == Launcher::kSlurm
                        ? has_hosts ? kStartByHosts
                                    : "srun --kill-on-bad-exit=1 bash -c 'exec torchrun "
                                      "--node-rank=\"$SLURM_NODEID\" \"$@\"' torchrun \\\n  "
                        : "exec torchrun ";
  out += "\"${LAUNCH_ARGS[@]}\" \\\n  " + program.words;
  for (const ArgumentBlock& block : program.blocks) {
    out += fmt::format(" \\\n  \"${{{}[@]}}\"", block.name);
  }
  return out + " \\\n  \"$@\"\n";
}

}  // namespace

Result<World> world_of(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster.spec;
  if (cluster.accelerator.is_cpu()) {
    return failure({ErrorCode::kIllegal, "has no GPU that a launcher could count", "", "cluster",
                    "a cluster of GPUs"});
  }
  if (!is_in_order(cluster) && !cluster.fabric.devices.empty()) {
    return failure({ErrorCode::kNotSupported, "GPUs in an order of their own", "", "cluster.place",
                    "launchers number the ranks of a node in their order; place nodes alone"});
  }
  const std::int64_t gpus = cluster.gpus;
  std::int64_t nodes = 0;
  for (std::int64_t rank = 0; rank < gpus; ++rank) {
    nodes =
        std::max(nodes, scenario.cluster.node_of(DeviceId(static_cast<std::int32_t>(rank))) + 1);
  }
  const std::int64_t each = gpus / std::max<std::int64_t>(nodes, 1);
  for (std::int64_t rank = 0; rank < gpus; ++rank) {
    const std::int64_t node = scenario.cluster.node_of(DeviceId(static_cast<std::int32_t>(rank)));
    if (node * each <= rank && rank < (node + 1) * each) continue;
    return failure({ErrorCode::kIllegal,
                    fmt::format("{} GPUs on {} nodes are not the same number on each", gpus, nodes),
                    "", "cluster.gpus", "launchers start equally many ranks on every node"});
  }
  return World{nodes, each};
}

Result<std::string> launch_script(const Scenario& scenario, const LaunchProgram& program,
                                  Launcher launcher, const std::vector<Setting>& remarks) {
  const auto world = world_of(scenario);
  if (!world) return failure(world.error());
  const ClusterSpec& cluster = scenario.cluster.spec;
  std::string out = "#!/usr/bin/env bash\n";
  if (launcher == Launcher::kSlurm) out += slurm_header(cluster, *world);
  out += fmt::format("# {} on {} GPUs of {}: written by stepcast export.\n",
                     in_comment(scenario.model.name), cluster.gpus, in_comment(cluster.name));
  // Pods have names of their own.
  const bool has_hosts = launcher != Launcher::kPod && !cluster.fabric.hosts.empty();
  if (launcher == Launcher::kTorchrun) {
    out += fmt::format("# Start it on every node, with NODE_RANK{} set.\n",
                       has_hosts ? "" : " and MASTER_ADDR");
  }
  for (const std::string& one : settings_left_open(scenario)) {
    out += "# No scenario says, set for a real run: " + one + "\n";
  }
  out += remark_lines(remarks) + "set -euo pipefail\n\n";
  out += fmt::format("NNODES={}\nGPUS_PER_NODE={}\n", world->nodes, world->gpus_per_node);
  out += rendezvous(launcher, has_hosts ? cluster.fabric.hosts : std::vector<std::string>()) + "\n";
  out += network_environment(cluster, *world);
  out += nccl_environment(cluster.nccl);
  for (const std::string& line : program.variables) out += line + "\n";
  if (!program.variables.empty()) out += "\n";
  out += launch_arguments(launcher);
  for (const ArgumentBlock& block : program.blocks) {
    out += fmt::format("{}=(\n  {}\n)\n", block.name, fmt::join(block.lines, "\n  "));
  }
  return out + "\n" + start(launcher, program, has_hosts);
}

}  // namespace stepcast
