// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/published.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "calibrate/fit/table_row.h"
#include "cluster/data_folder.h"
#include "core/read_rows.h"
#include "core/row_types.h"

namespace stepcast {
namespace {

using Columns = std::vector<std::string>;

// Returns what `read` makes of each row under `key`, if there are any.
template <class Read>
auto read_rows(ObjectReader& reader, const char* key, bool required, const Columns& columns,
               const Read& read) {
  std::vector<decltype(read(std::declval<const TableRow&>()))> out;
  const auto rows = required ? reader.required(key) : reader.value(key);
  if (!rows) return out;
  for (const JsonValue& value : rows->items()) {
    const TableRow row(columns, value);
    if (row.ok()) out.push_back(read(row));
  }
  return out;
}

// Rows that fits see, and those that no fit sees.
template <class Row, class Read>
void read_both(ObjectReader& reader, std::vector<Row>& rows, std::vector<Row>& held_out,
               const Read& read) {
  const Columns columns = read_texts(reader, "columns");
  rows = read_rows(reader, "rows", true, columns, read);
  held_out = read_rows(reader, "held_out", false, columns, read);
}

TableUnit read_unit(ObjectReader& reader) {
  if (!reader.required("unit")) return TableUnit::kFraction;
  return static_cast<TableUnit>(reader.choice("unit", table_unit_names()).value_or(0));
}

const char* measured_column(TableUnit unit) {
  return unit == TableUnit::kFraction || unit == TableUnit::kTflops ? "median" : "time";
}

bool read_short_runs(ObjectReader& reader) {
  return reader.choice("runs", {"short", "back_to_back"}).value_or(1) == 0;
}

DataType read_precision(ObjectReader& reader) {
  constexpr std::array kTypes = {DataType::kBf16, DataType::kFp8, DataType::kFp4};
  return kTypes[reader.choice("precision", {"bf16", "fp8", "fp4"}).value_or(0)];
}

void read_gemms(ObjectReader& reader, Published& out) {
  GemmTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.scattered = reader.boolean("scattered").value_or(false);
  table.precision = read_precision(reader);
  table.short_runs = read_short_runs(reader);
  table.at_limit = reader.number("at_limit", 1, 10).value_or(0);
  table.unit = read_unit(reader);
  read_both(reader, table.samples, table.held_out, [&](const TableRow& row) {
    return GemmSample{static_cast<GemmRole>(row.choice("role", enum_names<GemmRole>())),
                      row.count("batch", 1),
                      row.count("m"),
                      row.count("n"),
                      row.count("k"),
                      row.positive(measured_column(table.unit)),
                      row.count("output_bytes", 2),
                      row.flag("accumulate", false)};
  });
  out.gemm.push_back(std::move(table));
}

void read_attentions(ObjectReader& reader, Published& out) {
  AttentionTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.kernel = reader.required_text("kernel");
  table.unit = read_unit(reader);
  table.short_runs = read_short_runs(reader);
  read_both(reader, table.points, table.held_out, [&](const TableRow& row) {
    const auto pass =
        static_cast<AttentionPass>(row.choice("pass", {"forward", "backward", "both"}));
    return AttentionPoint{pass,
                          {pass == AttentionPass::kBackward, row.count("batch"), row.count("heads"),
                           row.count("kv_heads"), row.count("sequence"), row.count("head_dim"),
                           row.flag("causal", true), row.positive(measured_column(table.unit))}};
  });
  out.attention.push_back(std::move(table));
}

void read_grouped(ObjectReader& reader, Published& out) {
  GroupedTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.precision = read_precision(reader);
  read_both(reader, table.calls, table.held_out, [](const TableRow& row) {
    return ExpertCall{row.count("hidden"),        row.count("inter"), row.count("top_k"),
                      row.count("experts"),       row.count("ranks"), row.count("tokens"),
                      row.positive("time") * 1e-6};
  });
  out.grouped.push_back(std::move(table));
}

void read_expert_products(ObjectReader& reader, Published& out) {
  ExpertProductTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  read_both(reader, table.products, table.held_out, [](const TableRow& row) {
    return ExpertProduct{static_cast<GemmRole>(row.choice("role", enum_names<GemmRole>())),
                         row.count("experts"),
                         row.count("rows"),
                         row.count("outputs"),
                         row.count("inputs"),
                         row.positive("median")};
  });
  out.expert_products.push_back(std::move(table));
}

void read_memory(ObjectReader& reader, Published& out) {
  MemoryTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.alone = reader.boolean("alone").value_or(false);
  const Columns columns = read_texts(reader, "columns");
  table.points = read_rows(reader, "rows", true, columns, [](const TableRow& row) {
    return MemoryPoint{row.choice("kind", enum_names<MemoryBoundKind>()),
                       row.choice("pass", {"forward", "backward"}) == 1,
                       row.choice("way", {"one", "steps"}) == 1,
                       row.count("kernels"),
                       row.count("rows"),
                       row.count("width"),
                       row.positive("bytes"),
                       row.positive("time") * 1e-6};
  });
  out.memory.push_back(std::move(table));
}

void read_paces(ObjectReader& reader, Published& out) {
  PaceTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  const Columns columns = read_texts(reader, "columns");
  table.factors = read_rows(reader, "rows", true, columns, [](const TableRow& row) {
    for (const char* dimension : {"m", "n", "k"}) row.count(dimension);
    row.choice("precision", {"bf16", "fp8"});
    return row.positive("without_rest") / row.positive("after_rest");
  });
  out.paces.push_back(std::move(table));
}

}  // namespace

void read_published_file(JsonDocument& document, Published& out) {
  ObjectReader reader(document.root());
  reader.ignore("stepcast_published");
  for (const char* told : {"notes", "unit"}) reader.ignore(told);
  const std::string kind = reader.text("kind").value_or("");
  struct Table {
    const char* kind;
    void (*read)(ObjectReader&, Published&);
  };
  static constexpr Table kTables[] = {{"gemm", read_gemms},
                                      {"attention", read_attentions},
                                      {"grouped", read_grouped},
                                      {"expert_products", read_expert_products},
                                      {"memory_bound", read_memory},
                                      {"pace", read_paces},
                                      {"devices", read_keys<Published>}};
  const auto* found = std::ranges::find(kTables, kind, &Table::kind);
  if (found == std::end(kTables)) return;  // another fitter's
  found->read(reader, out);
  reader.finish();
}

Result<Published> read_published(const std::string& folder) {
  Published out;
  Errors errors;
  const auto names = data_names(folder);
  if (!names) return failure(names.error());
  if (names->empty()) {
    return failure(
        {ErrorCode::kNotFound, "there are no published tables in " + folder, "", "", ""});
  }
  for (const std::string& name : *names) {
    auto document = JsonDocument::load(folder + "/" + name + ".json");
    const Errors* found = nullptr;
    if (document) {
      read_published_file(**document, out);
      found = &(*document)->errors();
    } else {
      found = &document.error();
    }
    errors.insert(errors.end(), found->begin(), found->end());
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Rows AttentionChoice::fields() {
  static constexpr Row all[] = {row<&AttentionChoice::kernel>("kernel").required(),
                                row<&AttentionChoice::from>("from").required()};
  return rows_of<AttentionChoice>(all);
}

Rows AttentionKey::fields() {
  static constexpr Row all[] = {row<&AttentionKey::device>("device").required(),
                                row<&AttentionKey::kernel>("kernel").required()};
  return rows_of<AttentionKey>(all);
}

Rows AttentionFitRule::fields() {
  using F = AttentionFitRule;
  static constexpr Row all[] = {beside<&F::fits>(), row<&F::begins_with>("begins_with"),
                                row<&F::backward_from>("backward_from")};
  return rows_of<F>(all);
}

Rows AttentionLikeness::fields() {
  using F = AttentionLikeness;
  static constexpr Row all[] = {
      row<&F::kernel>("kernel").required(), row<&F::like>("like").required(),
      row<&F::rate>("rate").within(0.1, 10), row<&F::source>("source").required()};
  return rows_of<F>(all);
}

Rows DeviceRules::fields() {
  using F = DeviceRules;
  static constexpr Row all[] = {row<&F::device>("device").required(),
                                row<&F::gemm_from>("gemm_from"),
                                row<&F::gemm_roles_from>("gemm_roles_from"),
                                row<&F::in_step_from>("in_step_from"),
                                row<&F::max_matmul>("max_matmul").with_unit(),
                                row<&F::max_matmul_fp8>("max_matmul_fp8").with_unit(),
                                row<&F::max_matmul_fp4>("max_matmul_fp4").with_unit(),
                                row<&F::max_matmul_source>("max_matmul_source"),
                                row<&F::power_limited>("power_limited"),
                                row<&F::stream_fraction>("stream_fraction").within(0.01, 1),
                                row<&F::stream_source>("stream_source").required(),
                                row<&F::interval>("interval").with_unit(),
                                row<&F::interval_source>("interval_source").required(),
                                row<&F::overlap_saving>("overlap_saving").within(0, 1),
                                row<&F::overlap_channels>("overlap_channels").within(0, 1024),
                                row<&F::overlap_source>("overlap_source"),
                                row<&F::attention>("attention").required(),
                                row<&F::notes>("notes")};
  return rows_of<F>(all);
}

Rows PowerLaw::fields() {
  using F = PowerLaw;
  static constexpr Row all[] = {
      row<&F::slow_device>("slow_device").required(),
      row<&F::fast_device>("fast_device").required(), row<&F::slow>("slow").with_unit(),
      row<&F::fast>("fast").with_unit(), row<&F::source>("source").required()};
  return rows_of<F>(all);
}

Rows KindFactor::fields() {
  using F = KindFactor;
  static constexpr Row all[] = {row<&F::kind>("kind").named(enum_names<MemoryBoundKind>),
                                row<&F::architectures>("architectures"),
                                row<&F::factor>("factor").within(0.01, 100),
                                row<&F::source>("source").required()};
  return rows_of<F>(all);
}

Rows Published::fields() {
  using F = Published;
  static constexpr Row all[] = {
      row<&F::power_law>("power_law").required(), row<&F::kind_factors>("kind_factor").required(),
      row<&F::attention_fits>("attention_fits").required(),
      row<&F::attention_like>("attention_like").required(), row<&F::devices>("devices").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
