// SPDX-License-Identifier: Apache-2.0
// Tables of kernels and collectives as a JSON list, each with an id, its source, columns and rows;
// and the project's own tables of published kernels (calibrate/published).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "calibrate/device_name.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/table_row.h"
#include "calibrate/import/imported.h"
#include "calibrate/import/plausible.h"
#include "core/json.h"
#include "core/json_place.h"
#include "core/json_tree.h"
#include "core/limits.h"
#include "core/text/escape.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

constexpr const char* kCheck = "check the row's shape, its number and the unit of its column";

// Errors of `document`. Those that are listed have the lines of `text` on which they stand: each of
// them is looked for from the beginning of the text.
Errors with_lines(const JsonDocument& document, const std::string& text) {
  Errors out = document.errors();
  for (std::size_t i = 0; i < std::min(out.size(), kMostErrorsListed); ++i) {
    out[i].file = fmt::format("{}:{}", out[i].file, line_of(text, out[i].path));
  }
  return out;
}

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
  double peak_of(DataType type) const { return matrix_peak(device_, type).value(); }
  // FLOP/s of a row's kernel of `flops` FLOPs, by whichever of its columns says how fast it was.
  double rate_of(const Table& table, const TableRow& row, double flops) const {
    for (const std::string& column : table.columns) {
      const auto unit = unit_of_column(column);
      if (!unit || !row.has(column.c_str())) continue;
      const double peak =
          table.peak > 0 ? table.peak : peak_of(table.fp8 ? DataType::kFp8 : DataType::kBf16);
      return flops_per_s(*unit, row.positive(column.c_str()), flops, peak);
    }
    row.fail("says nowhere how fast the kernel was",
             "a column of time_us, time_ms, time_s, tflops or efficiency");
    return 1;
  }
  void add_attention(const TableRow& row, const std::string& kernel, AttentionMeasurement point,
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
    const TableRow row(table.columns, value);
    if (!row.ok()) continue;
    GemmSample sample{role_of(row.text("layout")),
                      row.count("b", 1),
                      row.count(wide_names ? "M" : "m"),
                      row.count(wide_names ? "N" : "n"),
                      row.count(wide_names ? "K" : "k"),
                      0,
                      row.text("out_dtype") == "fp32" ? 4 : 2,
                      row.flag("accumulate", false)};
    const DataType type = table.fp8 ? DataType::kFp8 : DataType::kBf16;
    sample.efficiency =
        rate_of(table, row, flops_of(gemm_of(sample, type))) / matrix_peak(device_, type).value();
    if (!row.is_sound()) continue;
    if (const auto why = why_implausible(device_, sample, type)) row.fail(*why, kCheck);
    (table.fp8 ? out_.gemms_fp8 : out_.gemms).push_back(sample);
  }
  took(table);
}

void TableReader::add_attention(const TableRow& row, const std::string& kernel,
                                AttentionMeasurement point, double flops_per_s) {
  point.seconds = flops_of(point) / flops_per_s;
  point.sample.efficiency = flops_per_s / peak_of(DataType::kBf16);
  if (!row.is_sound()) return;
  if (const auto why = why_implausible(device_, point)) row.fail(*why, kCheck);
  out_.attention[kernel].push_back(point);
}

// Kernels of a training step: the work of a causal mask is counted as that of full attention.
void TableReader::read_attention(const Table& table, bool backward) {
  // Transformer Engine takes this one.
  const char* kernel = device_.architecture == GpuArchitecture::kAmpere ? "fa2" : "cudnn";
  std::int64_t unequal = 0;
  for (const JsonValue& value : table.rows) {
    const TableRow row(table.columns, value);
    if (!row.ok()) continue;
    if (row.count("qk_head_dim") != row.count("v_head_dim") ||
        row.text("qkv_contiguous") == "False") {
      ++unequal;
      continue;
    }
    const AttentionMeasurement point{
        backward ? AttentionPass::kBackward : AttentionPass::kForward,
        {backward, row.count("batch"), row.count("head_num"), row.count("kv_head_num"),
         row.count("seq_len"), row.count("qk_head_dim"), true, 0},
        0};
    add_attention(row, kernel, point, rate_of(table, row, 2 * flops_of(point)) / 2);
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
    const TableRow row(table.columns, value);
    if (!row.ok()) continue;
    const std::int64_t sequence = row.count("seqlen");
    for (const auto& [column, kernel] : kernels) {
      if (!row.has(column)) continue;
      const AttentionMeasurement point{
          forward ? AttentionPass::kForward : AttentionPass::kBoth,
          {false, std::max<std::int64_t>(kTokens / sequence, 1), kHidden / head_dim,
           kHidden / head_dim, sequence, head_dim, causal, 0},
          0};
      add_attention(row, kernel, point, row.positive(column) * 1e12);
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
    const TableRow row(table.columns, cell);
    if (!row.ok()) continue;
    const CollectiveSample sample{Bytes(row.positive("size_bytes")),
                                  Seconds(row.positive("time_us") * 1e-6)};
    if (!row.is_sound()) continue;
    if (const auto why = why_implausible(cluster_, out.kind, out.ranks, out.nodes, sample)) {
      row.fail(*why, kCheck);
    }
    out.samples.push_back(sample);
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
  } else if (table.kind.starts_with("GEMM ")) {
    read_gemms(table);
  } else if (table.kind.starts_with("fused attention ")) {
    read_attention(table, table.kind.find("backward") != std::string::npos);
  } else if (table.kind == "attention TFLOP/s") {
    read_attention_chart(table, reader);
  } else {
    leave_out(table, fmt::format("tables of '{}'", table.kind.empty() ? table.id : table.kind));
  }
}

// The rows of a table of calibrate/published that is of `device`; whether there are any.
bool take(Published published, const Accelerator& device, JsonDocument& document, Imported& out) {
  const auto check = [&](const char* key, std::size_t row, const auto&... sample) {
    const auto why = why_implausible(device, sample...);
    if (!why) return;
    document.add({ErrorCode::kBadValue, *why, document.file(), fmt::format("{}[{}]", key, row),
                  "check the row's shape, its number and the table's unit"});
  };
  const auto check_gemms = [&](const char* key, const std::vector<GemmSample>& rows,
                               DataType type) {
    for (std::size_t i = 0; i < rows.size(); ++i) check(key, i, rows[i], type);
  };
  const auto check_attentions = [&](const char* key, const auto& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) check(key, i, rows[i]);
  };
  bool any = false;
  for (GemmTable& stated : published.gemm) {
    if (stated.device != device.name) continue;
    if (stated.precision == DataType::kFp4) continue;  // stepcast-fit alone makes curves of them
    any = true;
    const GemmTable table = in_fractions(std::move(stated), device);
    check_gemms("rows", table.samples, table.precision);
    check_gemms("held_out", table.held_out, table.precision);
    out.sources.push_back(table.source);
    if (table.short_runs) {
      out.gemms_alone.push_back(table);
      continue;
    }
    auto& samples = table.precision == DataType::kFp8 ? out.gemms_fp8 : out.gemms;
    samples.insert(samples.end(), table.samples.begin(), table.samples.end());
  }
  for (const AttentionTable& table : published.attention) {
    if (table.device != device.name) continue;
    any = true;
    const auto points = attention_measurements(table, device, 1);
    const auto unseen = held_out_measurements(table, device);
    check_attentions("rows", points);
    check_attentions("held_out", unseen);
    auto& all = out.attention[table.kernel];
    all.insert(all.end(), points.begin(), points.end());
    auto& all_unseen = out.attention_unseen[table.kernel];
    all_unseen.insert(all_unseen.end(), unseen.begin(), unseen.end());
    out.sources.push_back(table.source);
  }
  return any;
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
    if (!document.ok()) return failure(with_lines(document, text));
    if (published.gemm.empty() && published.attention.empty()) {
      return failure({ErrorCode::kNotSupported,
                      fmt::format("is a table of {}, which no import takes",
                                  json_text(document.root().raw()["kind"])),
                      file, "kind", "accepted: gemm and attention"});
    }
    const bool any = take(std::move(published), cluster.accelerator, document, out);
    if (!document.ok()) return failure(with_lines(document, text));
    return any ? Result<void>() : Result<void>(nothing_for(file, cluster));
  }
  TableReader reader(cluster, out);
  for (const JsonValue& table : document.root().items()) reader.read(table);
  if (!document.ok()) return failure(with_lines(document, text));
  if (!reader.took_any()) return nothing_for(file, cluster);
  return {};
}

}  // namespace stepcast
