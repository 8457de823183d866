// SPDX-License-Identifier: Apache-2.0
#include "cluster/nccl_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "cluster/irregular_cluster.h"
#include "cluster/xml_element.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/limits.h"

namespace stepcast {
namespace {

constexpr const char* kOfSwitch = "0x0680";  // how the class of an NVSwitch begins
constexpr const char* kOfBridge = "0x0604";  // that of a PCIe switch or port
constexpr const char* kOfInfiniband = "0x0207";
constexpr std::size_t kMostOfAKind = 1024;  // as in a cluster that is described by keys
constexpr std::size_t kMostSockets = 64;

// The number that a text begins with, as in "32.0 GT/s PCIe"; 0 where there is none.
double number_of(const XmlElement& element, const std::string& key) {
  const std::string text = element.text(key);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// Bytes a second of one direction: transfers a second of each lane, less the line code (8b/10b up
// to 5 GT/s, 128b/130b up to 32, frames of 242 in 256 bytes from 64 on). Virtual machines leave it
// out or say 255 lanes; NCCL then takes a slot of generation 3.
double pcie_rate(const XmlElement& pci) {
  double transfers = number_of(pci, "link_speed");
  double lanes = number_of(pci, "link_width");
  if (!(transfers > 0 && transfers <= 256)) transfers = 8;
  if (!(lanes > 0 && lanes <= 32)) lanes = 16;
  const double code = transfers <= 5 ? 0.8 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
  return transfers * 1e9 * lanes * code / 8;
}

// What NCCL counts between two sockets (topo.h: *_QPI_BW, AMD_*_BW, ARM_BW, ZPI_BW). Families and
// models are those of /proc/cpuinfo, or both fields of the register in one number.
double socket_rate(const XmlElement& cpu) {
  const double model = number_of(cpu, "modelid"), family = number_of(cpu, "familyid");
  if (cpu.text("vendor") == "GenuineIntel") {
    return model >= 207 ? 40e9 : model >= 143 ? 22e9 : model >= 85 ? 10e9 : 6e9;
  }
  if (cpu.text("vendor") == "AuthenticAMD") {
    return family == 26 || family == 191 ? 32e9 : family == 25 || family == 175 ? 24e9 : 16e9;
  }
  return 6e9;
}

const char* vendor_of(const XmlElement& cpu, bool has_c2c) {
  if (cpu.text("vendor") == "GenuineIntel") return name_of(CpuVendor::kIntel);
  if (cpu.text("vendor") == "AuthenticAMD") return name_of(CpuVendor::kAmd);
  return has_c2c ? name_of(CpuVendor::kNvidia) : name_of(CpuVendor::kOther);
}

std::string lower_bus(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string rate_text(double rate) { return fmt::format("{} B/s", rate); }

struct Cable {
  std::string from, to;
  double rate = 0;
};

struct Gpu {
  std::string name, bus, above;  // `above`: the part that it hangs on
  double dev = 0;
  double sm = 0;
  std::string device;
  std::map<std::string, double> cables;  // by the bus of the GPU they lead to
  double to_switch = 0;
  double c2c = 0;
};

struct Nic {
  std::string name, above;
  double dev = 0;
  double rate = 0;
  bool is_with_gpus = false;  // it shares a PCIe switch with a GPU
};

// One machine of the file.
struct Machine {
  std::string hash;
  std::vector<std::string> hosts, switches;
  std::vector<double> socket_rates;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<Cable> cables;  // of PCIe and between sockets
};

class FileReader {
 public:
  FileReader(const XmlElement& root, std::string file) : root_(root), file_(std::move(file)) {}

  Result<void> read() {
    if (root_.name != "system") {
      return fail(ErrorCode::kFormat, fmt::format("the first element is <{}>", root_.name),
                  root_.name == "topology"
                      ? "this is hwloc's file; NCCL writes its own to the file "
                        "that NCCL_TOPO_DUMP_FILE names"
                      : "<system>, as NCCL_TOPO_DUMP_FILE writes it");
    }
    for (const XmlElement& cpu : root_.children) {
      if (cpu.name != "cpu") return unknown(cpu, root_);
      if (machines_.size() > kMostOfAKind) {
        return fail(ErrorCode::kBadValue, fmt::format("more than {} machines", kMostOfAKind));
      }
      if (auto read = read_cpu(cpu); !read) return read;
    }
    for (Machine& machine : machines_) {
      if (auto sound = finish(machine); !sound) return sound;
    }
    if (machines_.empty()) return fail(ErrorCode::kFormat, "there is no <cpu> in <system>");
    return {};
  }

  const std::vector<Machine>& machines() const { return machines_; }
  const std::string& network() const { return network_; }
  const std::string& cpu() const { return cpu_; }
  bool has_links() const { return has_links_; }
  bool is_dump() const { return is_dump_; }

 private:
  Result<void> fail(ErrorCode code, std::string message, std::string hint = "") const {
    return failure({code, std::move(message), file_, "", std::move(hint)});
  }
  Result<void> unknown(const XmlElement& child, const XmlElement& parent) const {
    return fail(
        ErrorCode::kUnknownKey,
        fmt::format("<{}> stands in <{}>, where NCCL has no such element", child.name, parent.name),
        "a file that NCCL_TOPO_DUMP_FILE wrote");
  }

  Machine& machine_of(const XmlElement& cpu) {
    const std::string hash = cpu.text("host_hash");
    for (Machine& machine : machines_) {
      if (machine.hash == hash) return machine;
    }
    machines_.push_back({});
    machines_.back().hash = hash;
    return machines_.back();
  }

  Result<void> read_cpu(const XmlElement& cpu) {
    Machine& machine = machine_of(cpu);
    const std::string host = fmt::format("host{}", machine.hosts.size());
    machine.hosts.push_back(host);
    machine.socket_rates.push_back(socket_rate(cpu));
    for (const XmlElement& child : cpu.children) {
      if (child.name == "nic") {  // a virtual one, which hangs on no slot
        const std::string port = add_switch(machine, host, pcie_rate({}));
        if (auto read = read_nic(machine, child, port, pcie_rate({})); !read) return read;
      } else if (child.name == "pci") {
        if (auto read = read_pci(machine, child, host, true); !read) return read;
      } else {
        return unknown(child, cpu);
      }
    }
    const bool has_c2c = std::ranges::any_of(machine.gpus, [](const Gpu& g) { return g.c2c > 0; });
    cpu_ = vendor_of(cpu, has_c2c);
    return {};
  }

  std::string add_switch(Machine& machine, const std::string& above, double rate) {
    machine.switches.push_back(fmt::format("pcie{}", machine.switches.size()));
    machine.cables.push_back({machine.switches.back(), above, rate});
    return machine.switches.back();
  }

  static const XmlElement* child_of(const XmlElement& element, std::string_view name) {
    const auto found = std::ranges::find(element.children, name, &XmlElement::name);
    return found == element.children.end() ? nullptr : &*found;
  }

  // A device right below a socket has a port of its own there.
  Result<void> read_pci(Machine& machine, const XmlElement& pci, const std::string& above,
                        bool is_port) {
    const std::string kind = pci.text("class");
    const double rate = pcie_rate(pci);
    is_dump_ |= pci.has("device");
    const bool is_gpu = child_of(pci, "gpu") != nullptr || kind.starts_with("0x03");
    const bool is_nic = child_of(pci, "nic") != nullptr;
    if (is_gpu || is_nic) {
      const std::string at = is_port ? add_switch(machine, above, rate) : above;
      return is_gpu ? read_gpu(machine, pci, at, rate)
                    : read_nic(machine, *child_of(pci, "nic"), at, rate, pci);
    }
    if (!kind.starts_with(kOfBridge)) return {};  // a disk, or a NIC that NCCL does not use
    const std::string self = add_switch(machine, above, rate);
    for (const XmlElement& child : pci.children) {
      if (child.name == "pcilink") continue;  // two halves of one switch, which the tree joins too
      if (child.name != "pci") return unknown(child, pci);
      if (auto read = read_pci(machine, child, self, false); !read) return read;
    }
    return {};
  }

  Result<void> read_gpu(Machine& machine, const XmlElement& pci, const std::string& at,
                        double rate) {
    Gpu gpu;
    gpu.bus = lower_bus(pci.text("busid"));
    gpu.above = at;
    gpu.device = pci.text("device");
    gpu.dev = static_cast<double>(machine.gpus.size());
    for (const XmlElement& child : pci.children) {
      if (child.name != "gpu") return unknown(child, pci);
      if (child.has("dev")) gpu.dev = number_of(child, "dev");
      gpu.sm = number_of(child, "sm");
      for (const XmlElement& link : child.children) {
        if (auto read = read_link(gpu, link, child); !read) return read;
      }
    }
    gpu.name = fmt::format("gpu{}", machine.gpus.size());
    machine.cables.push_back({gpu.name, at, gpu.c2c > 0 ? gpu.c2c : rate});
    machine.gpus.push_back(std::move(gpu));
    return {};
  }

  Result<void> read_link(Gpu& gpu, const XmlElement& link, const XmlElement& parent) {
    const double count = link.has("count") ? number_of(link, "count") : 1;
    if (!(count > 0 && count <= 1024)) {
      return fail(
          ErrorCode::kBadValue,
          fmt::format("a <{}> of {} has the count '{}'", link.name, gpu.bus, link.text("count")),
          "how many links there are");
    }
    if (link.name == "c2c") {
      gpu.c2c += count * number_of(link, "bw") * 1e6;  // MB/s of each
      return {};
    }
    if (link.name != "nvlink" && link.name != "xgmi") return unknown(link, parent);
    has_links_ = true;
    const std::string kind = link.text("tclass");
    if (kind.starts_with(kOfSwitch)) {
      gpu.to_switch += count;
    } else if (kind.starts_with("0x03") || kind.starts_with("0x12")) {
      gpu.cables[lower_bus(link.text("target"))] += count;
    } else {
      return fail(ErrorCode::kNotSupported,
                  fmt::format("a link of {} leads to a device of the class '{}'", gpu.bus, kind),
                  "links to GPUs and to NVSwitches");
    }
    return {};
  }

  Result<void> read_nic(Machine& machine, const XmlElement& nic, const std::string& at, double rate,
                        const XmlElement& pci = {}) {
    Nic out;
    out.above = at;
    for (const XmlElement& net : nic.children) {
      if (net.name != "net") return unknown(net, nic);
      if (out.rate == 0) out.dev = number_of(net, "dev");
      out.rate += number_of(net, "speed") * 1e6 / 8;  // Mb/s of each port
      note_network(pci.text("class"), net.text("name"));
    }
    if (!(out.rate > 0)) return {};
    out.name = fmt::format("nic{}", machine.nics.size());
    machine.cables.push_back({out.name, at, rate});
    machine.nics.push_back(std::move(out));
    return {};
  }

  void note_network(const std::string& kind, const std::string& name) {
    if (!network_.empty()) return;
    if (name.starts_with("rdmap") || name.starts_with("efa")) {
      network_ = name_of(Network::kEfa);
    } else if (kind.starts_with(kOfInfiniband)) {
      network_ = name_of(Network::kInfiniband);
    } else if (name.starts_with("eth") || name.starts_with("en")) {
      network_ = name_of(Network::kTcp);
    } else if (kind.starts_with("0x02")) {
      network_ = name_of(Network::kRoce);
    }
  }

  Result<void> check_size(const Machine& machine) const {
    if (machine.gpus.empty()) {
      return fail(ErrorCode::kIllegal, "a machine of this file has no GPU",
                  "a <gpu> in a <pci>, or a <pci> of the class 0x030200");
    }
    if (machine.hosts.size() > kMostSockets) {
      return fail(ErrorCode::kBadValue, fmt::format("a machine of {} <cpu>", machine.hosts.size()),
                  fmt::format("at most {}", kMostSockets));
    }
    for (const std::size_t count :
         {machine.gpus.size(), machine.nics.size(), machine.switches.size()}) {
      if (count <= kMostOfAKind) continue;
      return fail(ErrorCode::kBadValue,
                  fmt::format("a machine of {} GPUs, NICs or PCIe switches", count),
                  fmt::format("at most {}", kMostOfAKind));
    }
    return {};
  }

  // Numbers GPUs and NICs as NCCL does, joins the sockets, and leaves out NICs that no GPU uses.
  Result<void> finish(Machine& machine) {
    if (auto sound = check_size(machine); !sound) return sound;
    std::ranges::stable_sort(machine.gpus, {}, &Gpu::dev);
    std::ranges::stable_sort(machine.nics, {}, &Nic::dev);
    for (std::size_t i = 0; i < machine.hosts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        machine.cables.push_back({machine.hosts[i], machine.hosts[j],
                                  std::min(machine.socket_rates[i], machine.socket_rates[j])});
      }
    }
    std::set<std::string> buses;
    for (const Gpu& gpu : machine.gpus) buses.insert(gpu.bus);
    for (const Gpu& gpu : machine.gpus) {
      for (const auto& [target, count] : gpu.cables) {
        if (buses.contains(target) && target != gpu.bus) continue;
        return fail(ErrorCode::kNotFound,
                    fmt::format("a link of {} leads to {}, where no GPU of its machine is", gpu.bus,
                                target));
      }
    }
    leave_out_lone_nics(machine);
    return {};
  }

  // The switch above all others on the way to a socket.
  static std::string top_of(const Machine& machine, std::string at) {
    for (bool rises = true; rises;) {
      rises = false;
      for (const Cable& cable : machine.cables) {
        if (cable.from != at || !cable.to.starts_with("pcie")) continue;
        at = cable.to;
        rises = true;
        break;
      }
    }
    return at;
  }

  // NICs of the storage stand apart from GPUs that have nearer ones. NCCL's rings pass them by.
  static void leave_out_lone_nics(Machine& machine) {
    std::set<std::string> with_gpus, with_nics;
    for (const Gpu& gpu : machine.gpus) with_gpus.insert(top_of(machine, gpu.above));
    for (Nic& nic : machine.nics) {
      const std::string top = top_of(machine, nic.above);
      nic.is_with_gpus = with_gpus.contains(top);
      with_nics.insert(top);
    }
    if (!std::ranges::includes(with_nics, with_gpus)) return;
    const auto is_lone = [](const Nic& nic) { return !nic.is_with_gpus; };
    for (const Nic& nic : machine.nics) {
      if (!is_lone(nic)) continue;
      std::erase_if(machine.cables, [&](const Cable& c) { return c.from == nic.name; });
    }
    std::erase_if(machine.nics, is_lone);
  }

  const XmlElement& root_;
  std::string file_;
  std::vector<Machine> machines_;
  std::string network_, cpu_;
  bool has_links_ = false;
  bool is_dump_ = false;  // NCCL wrote it; files written by hand leave out what NCCL finds itself
};

// The graph of `nodes` copies of the machines, in the form of a file.
class GraphWriter {
 public:
  GraphWriter(double of_link, double of_gpu, Seconds latency, bool rails)
      : of_link_(of_link), of_gpu_(of_gpu), latency_(latency), rails_(rails) {}

  void add(const Machine& machine) {
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
    for (const Cable& cable : machine.cables) join(names[cable.from], names[cable.to], cable.rate);
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

  void add_scale_up(const Machine& machine, std::map<std::string, std::string>& names) {
    const std::string plane = fmt::format("node{}/nvswitch0", node_);
    bool has_plane = false;
    std::map<std::string, std::string> by_bus;
    for (const Gpu& gpu : machine.gpus) by_bus[gpu.bus] = names[gpu.name];
    for (const Gpu& gpu : machine.gpus) {
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
Result<Accelerator> accelerator_of(const Gpu& gpu, const std::string& file,
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

}  // namespace

bool is_nccl_topology(std::string_view base) { return base.ends_with(".xml"); }

Result<SortedJson> cluster_of_nccl_topology(std::string_view text, const std::string& base,
                                            ObjectReader& reader,
                                            const std::string& topologies_folder) {
  const auto root = parse_xml(text, base);
  if (!root) return failure(root.error());
  FileReader file(*root, base);
  if (const auto read = file.read(); !read) return failure(read.error());

  SortedJson out = {{"stepcast_cluster", 1},
                    {"name", std::filesystem::path(base).stem().string()},
                    {"cpu", file.cpu()}};
  const Gpu& first = file.machines().front().gpus.front();
  Accelerator device;
  if (const auto stated = reader.value("accelerator")) {
    out["accelerator"] = stated->raw();
    if (stated->is_text()) {
      auto found = find_accelerator(*stated->text(), topologies_folder);
      if (found) device = std::move(*found);
    } else {
      device = read_accelerator(*stated);
    }
  } else {
    auto found = accelerator_of(first, base, topologies_folder);
    if (!found) return failure(found.error());
    device = std::move(*found);
    out["accelerator"] = device.name;
  }
  const auto capability = static_cast<double>(device.compute_capability);
  if (first.sm > 0 && capability > 0 && first.sm != capability) {
    reader.fail("accelerator", ErrorCode::kIllegal,
                fmt::format("{} has the compute capability {:.1f}, and the GPUs of {} have {:.1f}",
                            device.name, capability / 10, base, first.sm / 10));
  }
  const std::int64_t nodes = reader.integer("nodes", 1, kMaxGpus).value_or(1);
  const auto scale_up = reader.rate("scale_up_bandwidth");
  if (!scale_up && !file.has_links() && !file.is_dump()) {
    reader.fail("scale_up_bandwidth", ErrorCode::kMissingKey,
                fmt::format("{} says nothing of NVLink, which NCCL finds by itself", base),
                "the bandwidth of a GPU's links together, as in \"450 GB/s\"; \"0 B/s\" for none");
  }
  const std::string network = reader.text("network").value_or(file.network());
  const bool has_nics = !file.machines().front().nics.empty();
  if (has_nics && network.empty()) {
    reader.fail("network", ErrorCode::kMissingKey,
                fmt::format("the names of the NICs of {} do not tell what they speak", base),
                "infiniband, roce, efa, tcp or slingshot");
  }
  if (has_nics) out["network"] = network;
  // Switches of NVLink that reduce came with Hopper.
  const bool has_switch = first.to_switch > 0 || (scale_up && scale_up->value() > 0);
  const bool may_reduce = device.compute_capability >= 90;
  out["nvls"] = reader.boolean("nvls").value_or(has_switch && first.cables.empty() && may_reduce);
  const Seconds latency =
      reader.seconds("network_latency").value_or(usual_latency(network_named(network)));
  GraphWriter graph(traits_of(device.architecture).nvlink.value(), scale_up ? scale_up->value() : 0,
                    latency, reader.boolean("rail_optimised").value_or(true));
  for (std::int64_t i = 0; i < nodes && graph.vertices() <= kMostVertices; ++i) {
    for (const Machine& machine : file.machines()) graph.add(machine);
  }
  return graph.finish(std::move(out));
}

}  // namespace stepcast
