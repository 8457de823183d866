// SPDX-License-Identifier: Apache-2.0
#include "cluster/nccl_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/xml_element.h"

namespace stepcast::nccl {
namespace {

constexpr const char* kOfSwitch = "0x068000";  // of an NVSwitch; 0x068001 is a processor
constexpr const char* kOfBridge = "0x0604";    // that of a PCIe switch or port
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

// NCCL counts so much between two sockets (topo.h: *_QPI_BW, AMD_*_BW, ARM_BW, ZPI_BW). Families
// and models are those of /proc/cpuinfo, or both fields of the register in one number.
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

// The switch above all others on the way to a socket.
std::string top_of(const Machine& machine, std::string at) {
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
      if (out_.machines.size() > kMostOfAKind) {
        return fail(ErrorCode::kBadValue, fmt::format("more than {} machines", kMostOfAKind));
      }
      if (auto read = read_cpu(cpu); !read) return read;
    }
    for (Machine& machine : out_.machines) {
      if (auto sound = finish(machine); !sound) return sound;
    }
    if (out_.machines.empty()) return fail(ErrorCode::kFormat, "there is no <cpu> in <system>");
    return {};
  }

  File take() { return std::move(out_); }

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
    for (Machine& machine : out_.machines) {
      if (machine.hash == hash) return machine;
    }
    out_.machines.push_back({});
    out_.machines.back().hash = hash;
    return out_.machines.back();
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
    out_.cpu = vendor_of(cpu, has_c2c);
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
    out_.is_dump |= pci.has("device");
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
    out_.has_links = true;
    const std::string kind = link.text("tclass");
    if (kind == kOfSwitch) {
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
    if (!out_.network.empty()) return;
    if (name.starts_with("rdmap") || name.starts_with("efa")) {
      out_.network = name_of(Network::kEfa);
    } else if (kind.starts_with(kOfInfiniband)) {
      out_.network = name_of(Network::kInfiniband);
    } else if (name.starts_with("eth") || name.starts_with("en")) {
      out_.network = name_of(Network::kTcp);
    } else if (kind.starts_with("0x02")) {
      out_.network = name_of(Network::kRoce);
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

  const XmlElement& root_;
  std::string file_;
  File out_;
};

}  // namespace

void leave_out_lone_nics(Machine& machine) {
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

Result<File> read_machines(const XmlElement& root, const std::string& file) {
  FileReader reader(root, file);
  if (const auto read = reader.read(); !read) return failure(read.error());
  return reader.take();
}

}  // namespace stepcast::nccl
