// SPDX-License-Identifier: Apache-2.0
#include "cluster/topology_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "core/text/characters.h"

namespace stepcast::nccl {
namespace {

constexpr std::size_t kMostParts = 256;
// No GPU of NVIDIA has more NVLinks (Hopper, Blackwell). Where it seems to have more, each is
// counted once for every GPU that an NVSwitch leads it to.
constexpr double kMostNvlinks = 18;
// The weight of one xGMI link; each further hop adds as much (ROCm/rocm-systems, amdsmi.h).
constexpr const char* kWeightOfHop = "15";
// Sockets have no rate in these tables: that of a third generation EPYC or Xeon (NCCL's topo.h).
constexpr double kBetweenSockets = 22e9;

// Terminals underline the header by escape sequences.
std::string without_escapes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      for (i += 2; i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0;
           ++i) {
      }
      continue;
    }
    if (line[i] != '\r') out += line[i];
  }
  return out;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : line) {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(without_escapes(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Parts that belong together, by number.
class Together {
 public:
  explicit Together(std::size_t count) : of_(count) { std::iota(of_.begin(), of_.end(), 0u); }
  void join(std::size_t a, std::size_t b) {
    const std::size_t from = of_[a], to = of_[b];
    for (std::size_t& one : of_) one = one == from ? to : one;
  }
  std::size_t operator()(std::size_t part) const { return of_[part]; }

 private:
  std::vector<std::size_t> of_;
};

// NICs that the tool does not list, dealt to the slots of the GPUs in order.
void add_nics(const MatrixRates& rates, Machine& machine) {
  const std::size_t count = static_cast<std::size_t>(rates.nics);
  for (std::size_t i = 0; i < count; ++i) {
    const Gpu& beside = machine.gpus[i * machine.gpus.size() / count];
    Nic nic;
    nic.name = fmt::format("nic{}", i);
    nic.above = beside.above;
    nic.dev = static_cast<double>(i);
    nic.rate = rates.nic.value();
    machine.cables.push_back({nic.name, nic.above, rates.pcie.value()});
    machine.nics.push_back(std::move(nic));
  }
}

struct Part {
  std::string name;
  std::string affinity;            // what follows its cells: the cores beside it
  std::vector<std::string> cells;  // by column
  bool is_gpu = false;
};

bool is_nvlink(const std::string& cell) { return cell.starts_with("NV"); }
bool on_one_switch(const std::string& cell) { return cell == "PIX" || cell == "PXB"; }
bool on_one_socket(const std::string& cell) {
  return on_one_switch(cell) || cell == "PHB" || cell == "NODE";
}

// Cells may run into each other where a line was cut and joined again ("NODENODE").
std::optional<std::string> take_cell(std::string_view& rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
  std::size_t size = 0;
  if (rest.starts_with("NV")) {
    size = 2;
    while (size < rest.size() && std::isdigit(static_cast<unsigned char>(rest[size])) != 0 &&
           size < 4)
      ++size;
  }
  for (const std::string_view known : {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"}) {
    if (rest.starts_with(known)) size = known.size();
  }
  if (size < 1 || (rest.starts_with("NV") && size < 3)) return std::nullopt;
  std::string out(rest.substr(0, size));
  rest.remove_prefix(size);
  return out;
}

class NvidiaReader {
 public:
  NvidiaReader(const std::vector<std::string>& lines, std::string file, const MatrixRates& rates)
      : lines_(lines), file_(std::move(file)), rates_(rates) {}

  Result<File> read() {
    if (auto parts = read_parts(); !parts) return failure(parts.error());
    Together switches(parts_.size()), sockets(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (std::size_t j = 0; j < parts_.size(); ++j) {
        if (on_one_switch(parts_[i].cells[j])) switches.join(i, j);
        const bool is_near =
            on_one_socket(parts_[i].cells[j]) ||
            (!parts_[i].affinity.empty() && i != j && parts_[i].affinity == parts_[j].affinity);
        if (is_near) sockets.join(i, j);
      }
    }
    File out;
    out.machines.push_back(machine_of(switches, sockets));
    out.has_links = has_links_;
    out.network = network_;
    out.cpu = name_of(CpuVendor::kOther);
    out.is_dump = true;  // the driver lists all links that there are
    return out;
  }

 private:
  Result<void> fail(std::string message, std::string hint) const {
    return failure({ErrorCode::kFormat, std::move(message), file_, "", std::move(hint)});
  }

  Result<void> read_parts() {
    std::size_t at = 0;
    for (; at < lines_.size() && parts_.empty(); ++at) {
      const std::vector<std::string> words = words_of(lines_[at]);
      if (words.empty() || words.front() != "GPU0") continue;
      for (const std::string& word : words) {
        if (word == "CPU" || word == "NUMA") break;
        parts_.push_back(
            {.name = word, .affinity = {}, .cells = {}, .is_gpu = word.starts_with("GPU")});
      }
    }
    if (parts_.empty()) {
      return fail("there is no line that begins with GPU0",
                  "the output of nvidia-smi topo -m, rocm-smi --showtopo or amd-smi topology");
    }
    if (parts_.size() > kMostParts) {
      return fail(fmt::format("{} columns", parts_.size()), fmt::format("at most {}", kMostParts));
    }
    for (; at < lines_.size(); ++at) {
      if (auto row = read_row(lines_[at]); !row) return row;
    }
    for (const Part& part : parts_) {
      if (!part.cells.empty()) continue;
      return fail(fmt::format("there is no row {}", part.name),
                  "the whole output of nvidia-smi topo -m");
    }
    return {};
  }

  Result<void> read_row(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) return {};
    const auto part = std::ranges::find(parts_, words.front(), &Part::name);
    if (words.front().ends_with(':')) note_network(words);
    if (part == parts_.end() || !part->cells.empty()) return {};
    std::string_view rest = line.substr(line.find(part->name) + part->name.size());
    while (part->cells.size() < parts_.size()) {
      const auto cell = take_cell(rest);
      if (!cell) break;
      part->cells.push_back(*cell);
    }
    if (part->cells.size() < parts_.size()) {
      return fail(fmt::format("the row {} has {} of {} cells", part->name, part->cells.size(),
                              parts_.size()),
                  "rows as nvidia-smi topo -m prints them, none cut off");
    }
    if (part->is_gpu) {
      for (const std::string& word : words_of(rest)) {
        if (word != "N/A") part->affinity += word + " ";
      }
    }
    return {};
  }

  // "  NIC0: mlx5_0".
  void note_network(const std::vector<std::string>& words) {
    if (words.size() < 2 || !words.front().starts_with("NIC")) return;
    if (words[1].starts_with("rdmap") || words[1].starts_with("efa")) network_ = "efa";
  }

  Machine machine_of(const Together& switches, const Together& sockets) {
    Machine out;
    std::map<std::size_t, std::string> host_of, switch_of;
    const auto place = [&](std::size_t i) {
      // GPUs come first. A NIC of a socket without any counts as the first one's.
      const bool is_lone = !parts_[i].is_gpu && !host_of.contains(sockets(i));
      const auto [host, new_host] =
          host_of.try_emplace(is_lone ? host_of.begin()->first : sockets(i));
      if (new_host) {
        host->second = fmt::format("host{}", out.hosts.size());
        out.hosts.push_back(host->second);
      }
      const auto [at, new_switch] = switch_of.try_emplace(switches(i));
      if (new_switch) {
        at->second = fmt::format("pcie{}", out.switches.size());
        out.switches.push_back(at->second);
        out.cables.push_back({at->second, host->second, rates_.pcie.value()});
      }
      return at->second;
    };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].is_gpu) continue;
      Gpu gpu;
      gpu.above = place(i);
      gpu.name = fmt::format("gpu{}", out.gpus.size());
      gpu.bus = parts_[i].name;
      gpu.dev = static_cast<double>(out.gpus.size());
      add_links(i, gpu);
      out.cables.push_back({gpu.name, gpu.above, rates_.pcie.value()});
      out.gpus.push_back(std::move(gpu));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].is_gpu) continue;
      Nic nic;
      nic.above = place(i);
      nic.name = fmt::format("nic{}", out.nics.size());
      nic.dev = static_cast<double>(out.nics.size());
      nic.rate = rates_.nic.value();
      out.cables.push_back({nic.name, nic.above, rates_.pcie.value()});
      out.nics.push_back(std::move(nic));
    }
    if (out.nics.empty()) add_nics(rates_, out);
    return out;
  }

  void add_links(std::size_t i, Gpu& gpu) {
    double all = 0, widest = 0;
    for (std::size_t j = 0; j < parts_.size(); ++j) {
      if (!is_nvlink(parts_[i].cells[j])) continue;
      const double count = std::stod(parts_[i].cells[j].substr(2));
      gpu.cables[parts_[j].name] = count;
      all += count;
      widest = std::max(widest, count);
    }
    has_links_ |= all > 0;
    if (all <= kMostNvlinks) return;
    gpu.cables.clear();
    gpu.to_switch = widest;
  }

  const std::vector<std::string>& lines_;
  std::string file_;
  MatrixRates rates_;
  std::vector<Part> parts_;  // in the order of the columns
  std::string network_;
  bool has_links_ = false;
};

// The tables of AMD's tools. A table has its title, a line that names the columns, and a row for
// each name.
class AmdReader {
 public:
  AmdReader(const std::vector<std::string>& lines, std::string file, const MatrixRates& rates)
      : file_(std::move(file)), rates_(rates) {
    for (const std::string& line : lines) read_line(line);
  }

  Result<File> read() {
    if (names_.empty() || names_.size() > kMostParts) {
      return fail("there is no table of link types", "rocm-smi --showtopo, or amd-smi topology");
    }
    for (const std::string& name : names_) {
      if (kinds_[name].size() == names_.size()) continue;
      return fail(fmt::format("the row {} of the link types has {} of {} cells", name,
                              kinds_[name].size(), names_.size()),
                  "the whole table");
    }
    File out;
    out.machines.push_back(machine());
    out.has_links = std::ranges::any_of(out.machines.front().gpus,
                                        [](const Gpu& gpu) { return !gpu.cables.empty(); });
    out.cpu = name_of(CpuVendor::kAmd);
    out.is_dump = true;
    return out;
  }

 private:
  enum class Table { kOther, kKinds, kWeights };
  using Rows = std::map<std::string, std::vector<std::string>>;

  Result<File> fail(std::string message, std::string hint) const {
    return failure({ErrorCode::kFormat, std::move(message), file_, "", std::move(hint)});
  }

  void read_line(const std::string& line) {
    const std::string lower = lower_case(line);
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    if (lower.find("numa node:") != std::string::npos) {
      numa_.push_back(words.back());
    } else if (lower.find("link type") != std::string::npos) {
      table_ = Table::kKinds;
    } else if (lower.find("weight") != std::string::npos) {
      table_ = Table::kWeights;
    } else if (words.front().starts_with("==") || words.back() == "TABLE:") {
      table_ = Table::kOther;
    } else if (table_ == Table::kKinds && names_.empty()) {
      names_ = words;
    } else if (table_ != Table::kOther && words != names_) {
      Rows& rows = table_ == Table::kKinds ? kinds_ : weights_;
      rows.try_emplace(words.front(), words.begin() + 1, words.end());
    }
  }

  bool is_direct(std::size_t i, std::size_t j) {
    if (kinds_[names_[i]][j] != "XGMI") return false;
    const std::vector<std::string>& weights = weights_[names_[i]];
    return weights.size() != names_.size() || weights[j] == kWeightOfHop;
  }

  Machine machine() {
    Machine out;
    std::map<std::string, std::string> host_of;
    const auto port_of = [&](std::size_t i) {
      const std::string numa = i < numa_.size() ? numa_[i] : "";
      const auto [host, is_new] = host_of.try_emplace(numa);
      if (is_new) {
        host->second = fmt::format("host{}", out.hosts.size());
        out.hosts.push_back(host->second);
      }
      out.switches.push_back(fmt::format("pcie{}", out.switches.size()));
      out.cables.push_back({out.switches.back(), host->second, rates_.pcie.value()});
      return out.switches.back();
    };
    for (std::size_t i = 0; i < names_.size(); ++i) {
      Gpu gpu;
      gpu.name = fmt::format("gpu{}", i);
      gpu.bus = names_[i];
      gpu.above = port_of(i);
      gpu.dev = static_cast<double>(i);
      for (std::size_t j = 0; j < names_.size(); ++j) {
        if (i != j && is_direct(i, j)) gpu.cables[names_[j]] = 1;
      }
      out.cables.push_back({gpu.name, gpu.above, rates_.pcie.value()});
      out.gpus.push_back(std::move(gpu));
    }
    add_nics(rates_, out);
    return out;
  }

  std::string file_;
  MatrixRates rates_;
  Table table_ = Table::kOther;
  std::vector<std::string> names_;
  Rows kinds_, weights_;
  std::vector<std::string> numa_;  // by GPU
};

}  // namespace

bool is_topology_matrix(std::string_view base) { return base.ends_with(".txt"); }

Result<File> read_topology_matrix(std::string_view text, const std::string& file,
                                  const MatrixRates& rates) {
  const std::vector<std::string> lines = lines_of(text);
  const std::string lower = lower_case(text);
  auto out = lower.find("link type") != std::string::npos ? AmdReader(lines, file, rates).read()
                                                          : NvidiaReader(lines, file, rates).read();
  if (!out) return out;
  Machine& machine = out->machines.front();
  for (std::size_t i = 0; i < machine.hosts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      machine.cables.push_back({machine.hosts[i], machine.hosts[j], kBetweenSockets});
    }
  }
  leave_out_lone_nics(machine);
  return out;
}

}  // namespace stepcast::nccl
