// SPDX-License-Identifier: Apache-2.0
#include "cluster/nccl_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "cluster/irregular_cluster.h"
#include "cluster/nccl_machine.h"
#include "cluster/topology_matrix.h"
#include "cluster/xml_element.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/limits.h"

namespace stepcast {
namespace {

std::string rate_text(double rate) { return fmt::format("{} B/s", rate); }

// The graph of `nodes` copies of the machines, in the form of a file.
class GraphWriter {
 public:
  GraphWriter(double of_link, double of_gpu, Seconds latency, bool rails)
      : of_link_(of_link), of_gpu_(of_gpu), latency_(latency), rails_(rails) {}

  void add(const nccl::Machine& machine) {
    // Vertices are named like those of any cluster, in the order of NCCL's numbers.
    std::map<std::string, std::string> names;
    const auto place = [&](const std::string& part, const char* kind, std::size_t index) {
      names[part] = fmt::format("node{}/{}{}", node_, kind, index);
      vertices_.push_back({{"name", names[part]}, {"kind", kind}, {"node", node_}});
    };
    for (std::size_t i = 0; i < machine.gpus.size(); ++i) place(machine.gpus[i].name, "gpu", i);
    for (std::size_t i = 0; i < machine.hosts.size(); ++i) place(machine.hosts[i], "host", i);
    for (std::size_t i = 0; i < machine.switches.size(); ++i) {
      place(machine.switches[i], "pcie", i);
    }
    for (std::size_t i = 0; i < machine.nics.size(); ++i) place(machine.nics[i].name, "nic", i);
    for (const nccl::Cable& cable : machine.cables)
      join(names[cable.from], names[cable.to], cable.rate);
    add_scale_up(machine, names);
    for (std::size_t i = 0; i < machine.nics.size(); ++i) {
      add_leaf(rails_ ? i : 0, names[machine.nics[i].name], machine.nics[i].rate);
    }
    ++node_;
  }

  std::size_t vertices() const { return vertices_.size(); }

  SortedJson finish(SortedJson out) {
    if (downlinks_.size() > 1) vertices_.push_back({{"name", "spine0"}, {"kind", "spine"}});
    for (const auto& [leaf, rate] : downlinks_) {
      vertices_.push_back({{"name", fmt::format("leaf{}", leaf)}, {"kind", "leaf"}});
      if (downlinks_.size() > 1) join(fmt::format("leaf{}", leaf), "spine0", rate);
    }
    out["vertices"] = vertices_;
    out["links"] = links_;
    return out;
  }

 private:
  void join(const std::string& a, const std::string& b, double rate, Seconds latency = {}) {
    SortedJson link = {{"between", {a, b}}, {"capacity", rate_text(rate)}};
    if (latency.value() > 0) link["latency"] = fmt::format("{} s", latency.value());
    links_.push_back(std::move(link));
  }

  void add_leaf(std::size_t leaf, const std::string& nic, double rate) {
    join(nic, fmt::format("leaf{}", leaf), rate, latency_ / 2);
    downlinks_[leaf] += rate;
  }

  void add_scale_up(const nccl::Machine& machine, std::map<std::string, std::string>& names) {
    const std::string plane = fmt::format("node{}/nvswitch0", node_);
    bool has_plane = false;
    std::map<std::string, std::string> by_bus;
    for (const nccl::Gpu& gpu : machine.gpus) by_bus[gpu.bus] = names[gpu.name];
    for (const nccl::Gpu& gpu : machine.gpus) {
      const bool on_plane = gpu.to_switch > 0 || (gpu.cables.empty() && of_gpu_ > 0);
      if (on_plane && !std::exchange(has_plane, true)) {
        vertices_.push_back({{"name", plane}, {"kind", "nvswitch"}, {"node", node_}});
      }
      if (on_plane) join(names[gpu.name], plane, of_gpu_ > 0 ? of_gpu_ : gpu.to_switch * of_link_);
      double all = 0;
      for (const auto& [target, count] : gpu.cables) all += count;
      for (const auto& [target, count] : gpu.cables) {
        if (target < gpu.bus) continue;  // the other end has it too
        join(names[gpu.name], by_bus[target],
             of_gpu_ > 0 ? of_gpu_ * count / all : count * of_link_);
      }
    }
  }

  double of_link_, of_gpu_;
  Seconds latency_;
  bool rails_;
  std::int64_t node_ = 0;
  SortedJson vertices_ = SortedJson::array(), links_ = SortedJson::array();
  std::map<std::size_t, double> downlinks_;
};

// The accelerator with this number on the PCI bus.
Result<Accelerator> accelerator_of(const nccl::Gpu& gpu, const std::string& file,
                                   const std::string& topologies_folder) {
  const auto all = list_accelerators(topologies_folder);
  if (!all) return failure(all.error());
  for (const Accelerator& one : *all) {
    if (std::ranges::find(one.pci_devices, gpu.device) != one.pci_devices.end()) return one;
  }
  const std::string told = gpu.device.empty() ? "without the number of its device"
                                              : fmt::format("of the device {}", gpu.device);
  return failure(
      {ErrorCode::kMissingKey,
       fmt::format("the GPU {} stands in the file {}, so its kind is not known", gpu.bus, told),
       file, "", "give \"accelerator\" beside \"base\": h100-sxm5-80g"});
}

Result<nccl::File> read_xml(std::string_view text, const std::string& base) {
  const auto root = parse_xml(text, base);
  if (!root) return failure(root.error());
  return nccl::read_machines(*root, base);
}

// The driver's tools print no rates: keys beside the base say them.
Result<nccl::File> read_matrix(std::string_view text, const std::string& base,
                               ObjectReader& reader) {
  nccl::MatrixRates rates;
  const auto pcie = reader.rate("pcie");
  if (pcie) rates.pcie = *pcie;
  const auto nic = reader.rate("nic");
  if (nic) rates.nic = *nic;
  rates.nics = reader.integer("nics_per_node", 0, nccl::kMostNics).value_or(0);
  auto file = nccl::read_topology_matrix(text, base, rates);
  if (!file) return file;
  if (!pcie) {
    reader.fail("pcie", ErrorCode::kMissingKey, fmt::format("{} does not tell it", base),
                "of a slot each way: \"31.5 GB/s\" (generation 4), \"63 GB/s\" (generation 5)");
  }
  if (!nic && !file->machines.front().nics.empty()) {
    reader.fail("nic", ErrorCode::kMissingKey, fmt::format("{} does not tell it", base),
                "of a NIC each way, as in \"400 Gb/s\"");
  }
  if (reader.has("cpu")) file->cpu = reader.text("cpu").value_or("");
  return file;
}

// The accelerator that is stated, or the one of the first GPU. Faults of a stated one are said by
// whoever reads the document.
Result<Accelerator> device_of(const nccl::Gpu& first, const std::string& base, ObjectReader& reader,
                              const std::string& topologies_folder) {
  const auto stated = reader.value("accelerator");
  if (!stated) return accelerator_of(first, base, topologies_folder);
  Accelerator out;
  if (stated->is_object()) {
    out = read_accelerator(*stated);
  } else if (const auto name = stated->text()) {
    if (auto found = find_accelerator(*name, topologies_folder)) out = std::move(*found);
  }
  const auto capability = static_cast<double>(out.compute_capability);
  if (first.sm > 0 && capability > 0 && first.sm != capability) {
    reader.fail("accelerator", ErrorCode::kIllegal,
                fmt::format("{} has the compute capability {:.1f}, and the GPUs of {} have {:.1f}",
                            out.name, capability / 10, base, first.sm / 10));
  }
  return out;
}

}  // namespace

bool is_machine_file(std::string_view base) {
  return base.ends_with(".xml") || nccl::is_topology_matrix(base);
}

Result<SortedJson> cluster_of_machines(std::string_view text, const std::string& base,
                                       ObjectReader& reader, const std::string& topologies_folder) {
  const auto file =
      nccl::is_topology_matrix(base) ? read_matrix(text, base, reader) : read_xml(text, base);
  if (!file) return failure(file.error());
  const nccl::Machine& first = file->machines.front();

  SortedJson out = {{"stepcast_cluster", 1},
                    {"name", std::filesystem::path(base).stem().string()},
                    {"cpu", file->cpu}};
  const auto device = device_of(first.gpus.front(), base, reader, topologies_folder);
  if (!device) return failure(device.error());
  const auto stated = reader.value("accelerator");
  out["accelerator"] = stated ? stated->raw() : SortedJson(device->name);
  const auto scale_up = reader.rate("scale_up_bandwidth");
  if (!scale_up && !file->has_links && !file->is_dump) {
    reader.fail("scale_up_bandwidth", ErrorCode::kMissingKey,
                fmt::format("{} says nothing of NVLink, which NCCL finds by itself", base),
                "the bandwidth of a GPU's links together, as in \"450 GB/s\"; \"0 B/s\" for none");
  }
  const std::string network = reader.text("network").value_or(file->network);
  if (!first.nics.empty()) {
    out["network"] = network;
    if (network.empty()) {
      reader.fail("network", ErrorCode::kMissingKey,
                  fmt::format("the names of the NICs of {} do not tell what they speak", base),
                  "infiniband, roce, efa, tcp or slingshot");
    }
  }
  // Switches of NVLink that reduce came with Hopper.
  const bool has_switch = first.gpus.front().to_switch > 0 || (scale_up && scale_up->value() > 0);
  const bool may_reduce = has_switch && first.gpus.front().cables.empty();
  out["nvls"] = reader.boolean("nvls").value_or(may_reduce && device->compute_capability >= 90);
  const Seconds latency =
      reader.seconds("network_latency").value_or(usual_latency(network_named(network)));
  GraphWriter graph(traits_of(device->architecture).nvlink.value(),
                    scale_up ? scale_up->value() : 0, latency,
                    reader.boolean("rail_optimised").value_or(true));
  const std::int64_t nodes = reader.integer("nodes", 1, kMaxGpus).value_or(1);
  for (std::int64_t i = 0; i < nodes && graph.vertices() <= kMostVertices; ++i) {
    for (const nccl::Machine& machine : file->machines) graph.add(machine);
  }
  return graph.finish(std::move(out));
}

}  // namespace stepcast
