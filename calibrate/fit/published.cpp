// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/published.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "calibrate/fit/table_row.h"
#include "cluster/data_folder.h"
#include "core/json_fields.h"

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

void read_gemms(ObjectReader& reader, Published& out) {
  GemmTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.scattered = reader.boolean("scattered").value_or(false);
  constexpr std::array kTypes = {DataType::kBf16, DataType::kFp8, DataType::kFp4};
  table.precision = kTypes[reader.choice("precision", {"bf16", "fp8", "fp4"}).value_or(0)];
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

}  // namespace stepcast
