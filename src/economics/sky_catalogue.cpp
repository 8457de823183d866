// SPDX-License-Identifier: Apache-2.0
#include "economics/sky_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "core/text/csv_line.h"
#include "core/unit_text.h"

namespace stepcast {
namespace {

// Instances of the clouds' own names that are shipped clusters. Google's cost as much as their host
// and eight of their accelerators, which stand in rows of their own.
struct Instance {
  std::string_view type, cluster;
  std::string_view accelerator = {};
};
constexpr Instance kInstances[] = {{"p4d.24xlarge", "aws-p4d"},
                                   {"p4de.24xlarge", "aws-p4de"},
                                   {"p5.48xlarge", "aws-p5"},
                                   {"p5e.48xlarge", "aws-p5e"},
                                   {"p5en.48xlarge", "aws-p5en"},
                                   {"p6-b200.48xlarge", "aws-p6-b200"},
                                   {"Standard_ND96asr_v4", "azure-nd-a100-v4"},
                                   {"Standard_ND96isr_H100_v5", "azure-nd-h100-v5"},
                                   {"Standard_ND96isr_MI300X_v5", "azure-nd-mi300x-v5"},
                                   {"a2-highgpu-8g", "gcp-a2-high", "A100"},
                                   {"a2-ultragpu-8g", "gcp-a2-ultra", "A100-80GB"},
                                   {"a3-highgpu-8g", "gcp-a3-high", "H100"},
                                   {"a3-megagpu-8g", "gcp-a3-mega", "H100-MEGA"},
                                   {"a3-ultragpu-8g", "gcp-a3-ultra", "H200"},
                                   {"BM.GPU.A100-v2.8", "oci-a100"},
                                   {"BM.GPU.H100.8", "oci-h100"},
                                   {"BM.GPU.MI300X.8", "oci-mi300x"},
                                   {"gpu_8x_h100_sxm5", "lambda-h100"}};

constexpr double kGpusOfHost = 8;  // of each instance above

constexpr std::string_view kColumns[] = {"InstanceType", "AcceleratorCount", "Price", "Region"};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view out = text.substr(0, end);
  if (out.ends_with('\r')) out.remove_suffix(1);
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

struct Dollars {
  std::optional<double> on_demand, spot;
};

// Sums are known where both parts are.
Dollars operator+(const Dollars& a, const Dollars& b) {
  const auto sum = [](std::optional<double> x, std::optional<double> y) {
    return x && y ? std::optional(*x + *y) : std::nullopt;
  };
  return {sum(a.on_demand, b.on_demand), sum(a.spot, b.spot)};
}

struct Cheapest {
  std::optional<double> dollars;  // a GPU
  std::string region;

  void take(std::optional<double> offered, double gpus, const std::string& where) {
    if (!offered || (dollars && *dollars <= *offered / gpus)) return;
    dollars = *offered / gpus;
    region = where;
  }
};

// The lowest prices of a cluster; they may be of two regions.
struct Lowest {
  Cheapest on_demand, spot;
};

// A region and a zone of it.
using Zone = std::pair<std::string, std::string>;

class Catalogue {
 public:
  Catalogue(const std::string& file, const std::vector<std::string>& head) : file_(file) {
    for (std::size_t i = 0; i < head.size(); ++i) columns_[head[i]] = i;
    width_ = head.size();
  }

  void read(std::string_view line, std::int64_t number) {
    const std::vector<std::string> cells = cells_of_csv_line(line);
    if (cells.size() != width_) {
      return fail(number, fmt::format("has {} cells, and the first line {}", cells.size(), width_));
    }
    const std::string type = cell(cells, "InstanceType");
    const auto instance = std::ranges::find(kInstances, type, &Instance::type);
    const bool is_instance = instance != std::end(kInstances);
    if (!is_instance && !type.empty()) return;
    const auto gpus = positive(cells, "AcceleratorCount", number);
    const Dollars dollars{positive(cells, "Price", number), positive(cells, "SpotPrice", number)};
    const Zone zone{cell(cells, "Region"), cell(cells, "AvailabilityZone")};
    if (is_instance && gpus) {
      take(instance->cluster, dollars, *gpus, zone);
    } else if (is_instance) {
      hosts_[{type, zone}] = dollars;
    } else if (gpus == kGpusOfHost) {
      accelerators_[{cell(cells, "AcceleratorName"), zone}] = dollars;
    }
  }

  Result<PriceList> list() {
    if (!errors_.empty()) return failure(errors_);
    add_hosts();
    PriceList out;
    for (const auto& [cluster, lowest] : lowest_) {
      if (!lowest.on_demand.dollars) continue;
      Price& one = out.emplace_back();
      one.cluster = cluster;
      one.dollars_per_gpu_hour = *lowest.on_demand.dollars;
      one.spot = lowest.spot.dollars;
      one.provider = fmt::format("SkyPilot's catalogue, {}", lowest.on_demand.region);
      if (one.spot && lowest.spot.region != lowest.on_demand.region) {
        one.provider += fmt::format(", spot in {}", lowest.spot.region);
      }
      one.as_of = "undated";
      one.source = file_;
    }
    if (!out.empty()) return out;
    return failure({ErrorCode::kNotFound, "prices no instance that is a shipped cluster", file_, "",
                    "the vms.csv of aws, azure, gcp, oci or lambda"});
  }

 private:
  using Part = std::pair<std::string, Zone>;

  void take(std::string_view cluster, const Dollars& dollars, double gpus, const Zone& zone) {
    Lowest& lowest = lowest_[cluster];
    lowest.on_demand.take(dollars.on_demand, gpus, zone.first);
    lowest.spot.take(dollars.spot, gpus, zone.first);
  }
  // Hosts of zones that also have their accelerators.
  void add_hosts() {
    for (const auto& [host, dollars] : hosts_) {
      const auto& [type, zone] = host;
      const auto instance = std::ranges::find(kInstances, type, &Instance::type);
      const auto found = accelerators_.find({std::string(instance->accelerator), zone});
      if (found == accelerators_.end()) continue;
      take(instance->cluster, dollars + found->second, kGpusOfHost, zone);
    }
  }
  std::string cell(const std::vector<std::string>& cells, std::string_view name) const {
    const auto at = columns_.find(std::string(name));
    return at == columns_.end() ? "" : cells[at->second];
  }
  // Nothing where the cell is empty or zero, as where a price is not known.
  std::optional<double> positive(const std::vector<std::string>& cells, std::string_view name,
                                 std::int64_t number) {
    const std::string text = cell(cells, name);
    if (text.empty()) return std::nullopt;
    const auto out = parse_count(text);
    if (out && *out == 0) return std::nullopt;
    if (out && *out > 0 && *out <= 1e6) return *out;
    fail(number, fmt::format("'{}' is no {}", text, name));
    return std::nullopt;
  }
  void fail(std::int64_t line, std::string message) {
    constexpr std::size_t kMost = 10;
    if (errors_.size() >= kMost) return;
    errors_.push_back({ErrorCode::kBadValue, std::move(message), file_,
                       fmt::format("line {}", line), "a catalogue as SkyPilot writes it"});
  }

  const std::string& file_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t width_ = 0;
  std::map<std::string_view, Lowest> lowest_;
  std::map<Part, Dollars> hosts_, accelerators_;  // of Google, by their names
  Errors errors_;
};

}  // namespace

bool is_sky_catalogue(const std::string& text) {
  std::string_view rest = text;
  const std::vector<std::string> head = cells_of_csv_line(take_line(rest));
  return std::ranges::all_of(
      kColumns, [&](std::string_view name) { return std::ranges::find(head, name) != head.end(); });
}

Result<PriceList> read_sky_catalogue(const std::string& text, const std::string& file) {
  std::string_view rest = text;
  Catalogue out(file, cells_of_csv_line(take_line(rest)));
  for (std::int64_t line = 2; !rest.empty(); ++line) {
    const std::string_view next = take_line(rest);
    if (!next.empty()) out.read(next, line);
  }
  return out.list();
}

}  // namespace stepcast
