// SPDX-License-Identifier: Apache-2.0
// Tables of kernels and collectives as a JSON list, each with an id, its source, columns and rows;
// and the project's own tables of published kernels (calibrate/published).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibrate/device_name.h"
#include "calibrate/import/imported.h"
#include "core/json.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

// One row by column name; what is missing or of the wrong type is an error of the row.
class Row {
 public:
  Row(const std::vector<std::string>& columns, JsonValue value)
      : columns_(columns), value_(std::move(value)), cells_(value_.items()) {
    if (cells_.size() == columns_.size()) return;
    value_.fail(ErrorCode::kBadValue,
                fmt::format("{} cells under {} columns", cells_.size(), columns_.size()));
    cells_.clear();
  }
  bool ok() const { return !cells_.empty(); }
  bool has(const char* column) const {
    const JsonValue* cell = at(column);
    return cell != nullptr && !cell->is_null();
  }
  std::int64_t count(const char* column, std::int64_t otherwise = 0) const {
    const JsonValue* cell = at(column);
    if (cell == nullptr) return missing(column, otherwise);
    const auto value = cell->integer();
    if (value && *value >= 1 && *value <= ObjectReader::kMaxCount) return *value;
    if (value) cell->fail(ErrorCode::kBadValue, cell->dump() + " is out of range", "at least 1");
    return 1;
  }
  double positive(const char* column) const {
    const JsonValue* cell = at(column);
    if (cell == nullptr) return static_cast<double>(missing(column, 0));
    const auto value = cell->number();
    if (value && *value > 0) return *value;
    if (value) cell->fail(ErrorCode::kBadValue, cell->dump() + " is out of range", "more than 0");
    return 1;
  }
  std::string text(const char* column) const {
    const JsonValue* cell = at(column);
    return cell == nullptr ? "" : cell->is_text() ? cell->text().value_or("") : cell->dump();
  }
  const JsonValue& value() const { return value_; }

 private:
  const JsonValue* at(const char* column) const {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    if (found == columns_.end() || cells_.empty()) return nullptr;
    return &cells_[static_cast<std::size_t>(found - columns_.begin())];
  }
  std::int64_t missing(const char* column, std::int64_t otherwise) const {
    if (otherwise == 0 && ok()) {
      value_.fail(ErrorCode::kMissingKey, fmt::format("there is no column '{}'", column));
    }
    return std::max<std::int64_t>(otherwise, 1);
  }
  const std::vector<std::string>& columns_;
  JsonValue value_;
  std::vector<JsonValue> cells_;
};

class TableReader {
 public:
  TableReader(const ClusterSpec& cluster, Imported& out)
      : cluster_(cluster), device_(cluster.accelerator), out_(out) {}

  void read(const JsonValue& value);
  bool took_any() const { return took_any_; }

 private:
  struct Table {
    std::string id, kind, device, source;
    double peak = 0;  // FLOP/s that efficiencies are of; 0: the device's own
    std::vector<std::string> columns;
    std::vector<JsonValue> rows;
    bool fp8 = false;
  };

  void leave_out(const Table& table, const std::string& why) {
    out_.left_out[why] += std::max<std::int64_t>(std::ssize(table.rows), 1);
  }
  void read_gemms(const Table& table);
  void read_attention(const Table& table, bool backward);
  void read_attention_chart(const Table& table, ObjectReader& reader);
  void read_collective(const JsonValue& value, Table& table, ObjectReader& reader);
  // A rate of the table, as a fraction of the device's peak.
  double fraction(double flops_per_s, DataType type) const {
    return flops_per_s / matrix_peak(device_, type).value();
  }
  double rate_of(const Table& table, const Row& row) const {
    if (row.has("tflops")) return row.positive("tflops") * 1e12;
    const double peak =
        table.peak > 0 ? table.peak
                       : matrix_peak(device_, table.fp8 ? DataType::kFp8 : DataType::kBf16).value();
    return row.positive("efficiency") * peak;
  }
  void add_attention(const std::string& kernel, AttentionPass pass, AttentionSample sample,
                     double flops_per_s);
  void took(const Table& table) {
    took_any_ = true;
    const auto& sources = out_.sources;
    if (std::find(sources.begin(), sources.end(), table.source) == sources.end()) {
      out_.sources.push_back(table.source);
    }
  }

  const ClusterSpec& cluster_;
  const Accelerator& device_;
  Imported& out_;
  bool took_any_ = false;
};

GemmRole role_of(const std::string& layout) {
  if (layout == "NN") return GemmRole::kInputGradient;
  return layout == "NT" ? GemmRole::kWeightGradient : GemmRole::kForward;
}

void TableReader::read_gemms(const Table& table) {
  if (table.fp8 && !device_.peak(DataType::kFp8)) {
    leave_out(table, "fp8 products of a device without fp8");
    return;
  }
  const bool wide_names =
      std::find(table.columns.begin(), table.columns.end(), "M") != table.columns.end();
  for (const JsonValue& value : table.rows) {
    const Row row(table.columns, value);
    if (!row.ok()) continue;
    const bool accumulate = row.text("accumulate") == "True" || row.text("accumulate") == "true";
    const GemmSample sample{
        role_of(row.text("layout")),
        row.count("b", 1),
        row.count(wide_names ? "M" : "m"),
        row.count(wide_names ? "N" : "n"),
        row.count(wide_names ? "K" : "k"),
        fraction(rate_of(table, row), table.fp8 ? DataType::kFp8 : DataType::kBf16),
        row.text("out_dtype") == "fp32" ? 4 : 2,
        accumulate};
    (table.fp8 ? out_.gemms_fp8 : out_.gemms).push_back(sample);
  }
  took(table);
}

void TableReader::add_attention(const std::string& kernel, AttentionPass pass,
                                AttentionSample sample, double flops_per_s) {
  AttentionTable one;
  one.tflops = true;
  sample.efficiency = flops_per_s / 1e12;
  one.points.push_back({pass, sample});
  out_.attention[kernel].push_back(attention_measurements(one, device_, 1).front());
}

// Kernels of a training step: the work of a causal mask is counted as that of full attention.
void TableReader::read_attention(const Table& table, bool backward) {
  // What Transformer Engine takes.
  const char* kernel = device_.architecture == GpuArchitecture::kAmpere ? "fa2" : "cudnn";
  std::int64_t unequal = 0;
  for (const JsonValue& value : table.rows) {
    const Row row(table.columns, value);
    if (!row.ok()) continue;
    if (row.count("qk_head_dim") != row.count("v_head_dim") ||
        row.text("qkv_contiguous") == "False") {
      ++unequal;
      continue;
    }
    add_attention(kernel, backward ? AttentionPass::kBackward : AttentionPass::kForward,
                  {backward, row.count("batch"), row.count("head_num"), row.count("kv_head_num"),
                   row.count("seq_len"), row.count("qk_head_dim"), true, 0},
                  rate_of(table, row) / 2);
  }
  if (unequal > 0) {
    out_.left_out
        ["attention whose head dimensions of query and value differ, or with strided "
         "operands"] += unequal;
  }
  took(table);
}

// TFLOP/s by sequence length and kernel: 16k tokens and a hidden size of 2048 throughout.
void TableReader::read_attention_chart(const Table& table, ObjectReader& reader) {
  constexpr std::int64_t kTokens = 16384, kHidden = 2048;
  const std::array<std::pair<const char*, const char*>, 4> kernels = {
      {{"flash1", "fa1"}, {"flash2", "fa2"}, {"flash3", "fa3"}, {"cudnn", "cudnn"}}};
  const std::int64_t head_dim = reader.integer("head_dim", 1).value_or(0);
  const bool causal = reader.boolean("causal").value_or(false);
  const bool forward = reader.text("pass").value_or("") == "fwd";
  if (head_dim < 1 || kHidden % head_dim != 0) {
    leave_out(table, "attention charts without their head dimension");
    return;
  }
  for (const JsonValue& value : table.rows) {
    const Row row(table.columns, value);
    if (!row.ok()) continue;
    const std::int64_t sequence = row.count("seqlen");
    for (const auto& [column, kernel] : kernels) {
      if (!row.has(column)) continue;
      add_attention(kernel, forward ? AttentionPass::kForward : AttentionPass::kBoth,
                    {false, std::max<std::int64_t>(kTokens / sequence, 1), kHidden / head_dim,
                     kHidden / head_dim, sequence, head_dim, causal, 0},
                    row.positive(column) * 1e12);
    }
    if (row.has("pytorch") || row.has("standard")) {
      ++out_.left_out["attention of unfused kernels: programs price their parts"];
    }
  }
  took(table);
}

void TableReader::read_collective(const JsonValue& value, Table& table, ObjectReader& reader) {
  const auto kind = kind_of_nccl_test(reader.text("collective").value_or(""));
  const auto has = [&](const char* column) {
    return std::find(table.columns.begin(), table.columns.end(), column) != table.columns.end();
  };
  const auto hardware = reader.value("hardware");
  if (!kind || !has("size_bytes") || !has("time_us") || !hardware) {
    leave_out(table, "tables of communication that give no time by size");
    return;
  }
  ObjectReader machine(*hardware);
  ImportedCollective out;
  out.kind = *kind;
  out.ranks = reader.required_integer("n_ranks", 2);
  const std::int64_t per_node = machine.integer("gpus_per_node", 1).value_or(8);
  out.nodes = (out.ranks + per_node - 1) / per_node;
  for (const JsonValue& cell : table.rows) {
    const Row row(table.columns, cell);
    if (!row.ok()) continue;
    out.samples.push_back({Bytes(static_cast<double>(row.count("size_bytes"))),
                           Seconds(row.positive("time_us") * 1e-6)});
  }
  if (per_node != cluster_.gpus_per_node && out.nodes > 1) {
    value.fail(ErrorCode::kIllegal,
               fmt::format("'{}' was measured with {} GPUs per node, and '{}' has {}", table.id,
                           per_node, cluster_.name, cluster_.gpus_per_node),
               "name the cluster that was measured: --cluster");
    return;
  }
  out_.collectives.push_back(std::move(out));
  took(table);
}

void TableReader::read(const JsonValue& value) {
  ObjectReader reader(value);
  Table table;
  table.id = reader.required_text("id");
  table.source = reader.required_text("source");
  if (const auto rows = reader.value("rows")) table.rows = rows->items();
  if (const auto columns = reader.value("columns")) {
    for (const JsonValue& column : columns->items()) {
      table.columns.push_back(column.text().value_or(""));
    }
  }
  table.kind = reader.text("kind").value_or("");
  table.device = reader.text("gpu").value_or("");
  if (const auto hardware = reader.value("hardware")) {
    ObjectReader machine(*hardware);
    table.device = machine.text("gpu").value_or("");
  }
  table.peak = reader.number("peak_tflops", 0, 1e6).value_or(0) * 1e12;
  table.fp8 = reader.text("dtype").value_or("").starts_with("FP8");
  if (!names_device(table.device, device_)) {
    leave_out(table, fmt::format("rows of other devices than {}", device_.name));
  } else if (reader.has("collective")) {
    read_collective(value, table, reader);
  } else if (table.kind == "GEMM efficiency vs shape" || table.kind == "GEMM TFLOP/s vs shape") {
    read_gemms(table);
  } else if (table.kind.starts_with("fused attention ")) {
    read_attention(table, table.kind.find("backward") != std::string::npos);
  } else if (table.kind == "attention TFLOP/s") {
    read_attention_chart(table, reader);
  } else {
    leave_out(table, fmt::format("tables of '{}'", table.kind.empty() ? table.id : table.kind));
  }
}

// A table of calibrate/published.
void take(const Published& published, const Accelerator& device, Imported& out) {
  for (const GemmTable& table : published.gemm) {
    if (table.device != device.name) continue;
    auto& samples = table.precision == DataType::kFp8 ? out.gemms_fp8 : out.gemms;
    samples.insert(samples.end(), table.samples.begin(), table.samples.end());
    out.sources.push_back(table.source);
  }
  for (const AttentionTable& table : published.attention) {
    if (table.device != device.name) continue;
    const auto points = attention_measurements(table, device, 1);
    auto& all = out.attention[table.kernel];
    all.insert(all.end(), points.begin(), points.end());
    out.sources.push_back(table.source);
  }
}

tl::unexpected<Errors> nothing_for(const std::string& file, const ClusterSpec& cluster) {
  return failure({ErrorCode::kNotFound,
                  fmt::format("holds nothing of {} that a profile takes", cluster.accelerator.name),
                  file, "", "name the cluster that was measured: --cluster"});
}

}  // namespace

Result<void> import_tables(const std::string& text, const std::string& file,
                           const ClusterSpec& cluster, Imported& out) {
  auto parsed = JsonDocument::parse(text, file);
  if (!parsed) return failure(parsed.error());
  JsonDocument& document = **parsed;
  const bool own = document.root().is_object() && document.root().raw().contains("kind") &&
                   document.root().raw().contains("stepcast_published");
  if (!own && !document.root().is_array()) {
    return failure(
        {ErrorCode::kFormat, "is JSON of no form that is known", file, "",
         "accepted: PyTorch traces (traceEvents), a list of tables (id, source, columns, rows), "
         "stepcast_published tables, or the text that nccl-tests print"});
  }
  if (own) {
    Published published;
    read_published_file(document, published);
    if (!document.ok()) return failure(document.errors());
    take(published, cluster.accelerator, out);
    return out.empty() ? Result<void>(nothing_for(file, cluster)) : Result<void>();
  }
  TableReader reader(cluster, out);
  for (const JsonValue& table : document.root().items()) reader.read(table);
  if (!document.ok()) return failure(document.errors());
  if (!reader.took_any()) return nothing_for(file, cluster);
  return {};
}

}  // namespace stepcast
