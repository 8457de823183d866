// SPDX-License-Identifier: Apache-2.0
#include "economics/sky_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "core/text/csv_line.h"
#include "core/unit_text.h"

namespace stepcast {
namespace {

// Instances of the clouds' own names that are shipped clusters.
struct Instance {
  std::string_view type, cluster;
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
                                   {"a2-highgpu-8g", "gcp-a2-high"},
                                   {"a2-ultragpu-8g", "gcp-a2-ultra"},
                                   {"a3-highgpu-8g", "gcp-a3-high"},
                                   {"a3-megagpu-8g", "gcp-a3-mega"},
                                   {"a3-ultragpu-8g", "gcp-a3-ultra"},
                                   {"BM.GPU.A100-v2.8", "oci-a100"},
                                   {"BM.GPU.H100.8", "oci-h100"},
                                   {"gpu_8x_h100_sxm5", "lambda-h100"}};

constexpr std::string_view kColumns[] = {"InstanceType", "AcceleratorCount", "Price", "Region"};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view out = text.substr(0, end);
  if (out.ends_with('\r')) out.remove_suffix(1);
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

struct Row {
  double price = 0;  // of the instance
  std::optional<double> spot = {};
  double gpus = 0;
  std::string region;
};

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
    const auto instance =
        std::ranges::find(kInstances, cell(cells, "InstanceType"), &Instance::type);
    if (instance == std::end(kInstances)) return;
    const auto price = dollars(cells, "Price", number),
               gpus = dollars(cells, "AcceleratorCount", number);
    const auto spot = dollars(cells, "SpotPrice", number);
    if (!gpus || *gpus < 1) return;
    Row& best = rows_[instance->cluster];
    if (price && (best.price == 0 || *price < best.price)) {
      best.price = *price;
      best.region = cell(cells, "Region");
    }
    if (spot && (!best.spot || *spot < *best.spot)) best.spot = spot;
    best.gpus = *gpus;
  }

  Result<PriceList> list() const {
    if (!errors_.empty()) return failure(errors_);
    PriceList out;
    for (const auto& [cluster, row] : rows_) {
      if (row.price == 0) continue;
      Price& one = out.emplace_back();
      one.cluster = cluster;
      one.dollars_per_gpu_hour = row.price / row.gpus;
      if (row.spot) one.spot = *row.spot / row.gpus;
      one.provider = fmt::format("SkyPilot's catalogue, {}", row.region);
      one.as_of = "undated";
      one.source = file_;
    }
    if (!out.empty()) return out;
    return failure({ErrorCode::kNotFound, "prices no instance that is a shipped cluster", file_, "",
                    "the vms.csv of aws, azure, gcp, oci or lambda"});
  }

 private:
  std::string cell(const std::vector<std::string>& cells, std::string_view name) const {
    const auto at = columns_.find(std::string(name));
    return at == columns_.end() ? "" : cells[at->second];
  }
  // Nothing where the cell is empty.
  std::optional<double> dollars(const std::vector<std::string>& cells, std::string_view name,
                                std::int64_t number) {
    const std::string text = cell(cells, name);
    if (text.empty()) return std::nullopt;
    const auto out = parse_count(text);
    if (out && *out >= 0 && *out <= 1e6) return *out;
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
  std::map<std::string_view, Row> rows_;
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
