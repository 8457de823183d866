// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/published.h"

#include <algorithm>
#include <filesystem>

#include "cluster/data_folder.h"
#include "core/json.h"
#include "cost/profile_curves.h"

namespace stepcast {
namespace {

// Rows of a table by column name.
class Rows {
 public:
  Rows(const std::vector<std::string>& columns, const JsonValue& rows) : columns_(columns) {
    for (const JsonValue& row : rows.items()) rows_.push_back(row.items());
  }
  std::size_t size() const { return rows_.size(); }
  // `missing` is what a table means that has no such column.
  std::int64_t count(std::size_t row, const char* column, std::int64_t missing = 1) const {
    const JsonValue* cell = at(row, column);
    return cell == nullptr ? missing : cell->integer().value_or(1);
  }
  double number(std::size_t row, const char* column, double missing = 1) const {
    const JsonValue* cell = at(row, column);
    return cell == nullptr ? missing : cell->number().value_or(1);
  }
  std::size_t choice(std::size_t row, const char* column,
                     const std::vector<std::string>& names) const {
    const JsonValue* cell = at(row, column);
    if (cell == nullptr) return 0;
    const auto found = std::find(names.begin(), names.end(), cell->text().value_or(""));
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    cell->fail(ErrorCode::kBadValue, cell->dump() + " is not accepted here", one_of(names));
    return 0;
  }

 private:
  const JsonValue* at(std::size_t row, const char* column) const {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    const auto index = static_cast<std::size_t>(found - columns_.begin());
    return index < rows_[row].size() ? &rows_[row][index] : nullptr;
  }
  std::vector<std::string> columns_;
  std::vector<std::vector<JsonValue>> rows_;
};

std::vector<GemmSample> gemm_samples(const Rows& rows, const char* measured) {
  std::vector<GemmSample> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({static_cast<GemmRole>(rows.choice(i, "role", gemm_role_names())),
                   rows.count(i, "batch"), rows.count(i, "m"), rows.count(i, "n"),
                   rows.count(i, "k"), rows.number(i, measured), rows.count(i, "output_bytes", 2),
                   rows.number(i, "accumulate", 0) > 0});
  }
  return out;
}

void read_gemms(ObjectReader& reader, Published& out) {
  GemmTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.scattered = reader.boolean("scattered").value_or(false);
  table.precision = reader.choice("precision", {"bf16", "fp8"}).value_or(0) == 1 ? DataType::kFp8
                                                                                 : DataType::kBf16;
  table.short_runs = reader.choice("runs", {"short", "back_to_back"}).value_or(1) == 0;
  table.microseconds = reader.text("unit").value_or("") == "us";
  const char* measured = table.microseconds ? "time" : "median";
  const std::vector<std::string> columns = read_texts(reader, "columns");
  if (const auto rows = reader.required("rows")) {
    table.samples = gemm_samples(Rows(columns, *rows), measured);
  }
  if (const auto rows = reader.value("held_out")) {
    table.held_out = gemm_samples(Rows(columns, *rows), measured);
  }
  out.gemm.push_back(std::move(table));
}

std::vector<AttentionPoint> attention_points(const Rows& rows, const char* measured) {
  std::vector<AttentionPoint> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto pass =
        static_cast<AttentionPass>(rows.choice(i, "pass", {"forward", "backward", "both"}));
    out.push_back(
        {pass,
         {pass == AttentionPass::kBackward, rows.count(i, "batch"), rows.count(i, "heads"),
          rows.count(i, "kv_heads"), rows.count(i, "sequence"), rows.count(i, "head_dim"),
          rows.number(i, "causal") > 0, rows.number(i, measured)}});
  }
  return out;
}

void read_attentions(ObjectReader& reader, Published& out) {
  AttentionTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  table.kernel = reader.required_text("kernel");
  const std::string unit = reader.text("unit").value_or("");
  table.tflops = unit == "TFLOP/s";
  table.microseconds = unit == "us";
  table.short_runs = reader.choice("runs", {"short", "back_to_back"}).value_or(1) == 0;
  const char* measured = table.microseconds ? "time" : "median";
  const std::vector<std::string> columns = read_texts(reader, "columns");
  if (const auto rows = reader.required("rows")) {
    table.points = attention_points(Rows(columns, *rows), measured);
  }
  if (const auto rows = reader.value("held_out")) {
    table.held_out = attention_points(Rows(columns, *rows), measured);
  }
  out.attention.push_back(std::move(table));
}

std::vector<ExpertCall> expert_calls(const Rows& rows) {
  std::vector<ExpertCall> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({rows.count(i, "hidden"), rows.count(i, "inter"), rows.count(i, "top_k"),
                   rows.count(i, "experts"), rows.count(i, "ranks"), rows.count(i, "tokens"),
                   rows.number(i, "time") * 1e-6});
  }
  return out;
}

void read_grouped(ObjectReader& reader, Published& out) {
  GroupedTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  const std::vector<std::string> columns = read_texts(reader, "columns");
  if (const auto rows = reader.required("rows")) table.calls = expert_calls(Rows(columns, *rows));
  if (const auto rows = reader.value("held_out")) {
    table.held_out = expert_calls(Rows(columns, *rows));
  }
  out.grouped.push_back(std::move(table));
}

std::vector<ExpertProduct> expert_products(const Rows& rows) {
  std::vector<ExpertProduct> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({static_cast<GemmRole>(rows.choice(i, "role", gemm_role_names())),
                   rows.count(i, "experts"), rows.count(i, "rows"), rows.count(i, "outputs"),
                   rows.count(i, "inputs"), rows.number(i, "median")});
  }
  return out;
}

void read_expert_products(ObjectReader& reader, Published& out) {
  ExpertProductTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  const std::vector<std::string> columns = read_texts(reader, "columns");
  if (const auto rows = reader.required("rows")) {
    table.products = expert_products(Rows(columns, *rows));
  }
  if (const auto rows = reader.value("held_out")) {
    table.held_out = expert_products(Rows(columns, *rows));
  }
  out.expert_products.push_back(std::move(table));
}

void read_memory(ObjectReader& reader, Published& out) {
  MemoryTable table;
  table.source = reader.required_text("source");
  table.device = reader.required_text("device");
  const std::vector<std::string> columns = read_texts(reader, "columns");
  if (const auto list = reader.required("rows")) {
    const Rows rows(columns, *list);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.points.push_back({rows.choice(i, "kind", elementwise_kind_names()),
                              rows.choice(i, "pass", {"forward", "backward"}) == 1,
                              rows.choice(i, "way", {"one", "steps"}) == 1,
                              rows.count(i, "kernels"), rows.count(i, "rows"),
                              rows.count(i, "width"), rows.number(i, "bytes"),
                              rows.number(i, "time") * 1e-6});
    }
  }
  out.memory.push_back(std::move(table));
}

std::optional<double> read_rate(ObjectReader& reader, const char* key) {
  const auto rate = reader.flops_rate(key);
  return rate ? std::optional<double>(rate->value()) : std::nullopt;
}

AttentionKey read_attention_key(ObjectReader& reader) {
  return {reader.required_text("device"), reader.required_text("kernel")};
}

AttentionFitRule read_attention_fit(const JsonValue& value) {
  ObjectReader reader(value);
  AttentionFitRule out;
  out.fits = read_attention_key(reader);
  if (const auto other = reader.value("begins_with")) {
    ObjectReader key(*other);
    out.begins_with = read_attention_key(key);
    key.finish();
  }
  out.backward_from = reader.text("backward_from").value_or("");
  reader.finish();
  return out;
}

DeviceRules read_device(const JsonValue& value) {
  ObjectReader reader(value);
  DeviceRules out;
  out.device = reader.required_text("device");
  out.gemm_from = reader.text("gemm_from").value_or("");
  out.gemm_roles_from = reader.text("gemm_roles_from").value_or("");
  out.in_step_from = reader.text("in_step_from").value_or("");
  out.max_matmul = read_rate(reader, "max_matmul");
  out.max_matmul_fp8 = read_rate(reader, "max_matmul_fp8");
  out.max_matmul_source = reader.text("max_matmul_source").value_or("");
  out.power_limited = reader.boolean("power_limited").value_or(false);
  out.stream_fraction = reader.number("stream_fraction", 0.01, 1).value_or(0.8);
  out.stream_source = reader.required_text("stream_source");
  out.interval_s = reader.seconds("interval").value_or(Seconds(1.3e-6)).value();
  out.interval_source = reader.required_text("interval_source");
  out.notes = reader.text("notes").value_or("");
  if (const auto list = reader.required("attention")) {
    for (const JsonValue& item : list->items()) {
      ObjectReader choice(item);
      out.attention.push_back({choice.required_text("kernel"), choice.required_text("from")});
      choice.finish();
    }
  }
  reader.finish();
  return out;
}

void read_power_law(const JsonValue& value, PowerLaw& out) {
  ObjectReader reader(value);
  out.slow_device = reader.required_text("slow_device");
  out.fast_device = reader.required_text("fast_device");
  out.slow = read_rate(reader, "slow").value_or(1);
  out.fast = read_rate(reader, "fast").value_or(1);
  out.source = reader.required_text("source");
  reader.finish();
}

void read_devices(ObjectReader& reader, Published& out) {
  if (const auto law = reader.required("power_law")) read_power_law(*law, out.power_law);
  if (const auto list = reader.required("kind_factor")) {
    for (const JsonValue& item : list->items()) {
      ObjectReader factor(item);
      out.kind_factors.push_back({factor.choice("kind", elementwise_kind_names()).value_or(0),
                                  read_texts(factor, "architectures"),
                                  factor.number("factor", 0.01, 100).value_or(1),
                                  factor.required_text("source")});
      factor.finish();
    }
  }
  if (const auto list = reader.required("attention_fits")) {
    for (const JsonValue& item : list->items()) {
      out.attention_fits.push_back(read_attention_fit(item));
    }
  }
  if (const auto list = reader.required("attention_like")) {
    for (const JsonValue& item : list->items()) {
      ObjectReader like(item);
      out.attention_like.push_back({like.required_text("kernel"), like.required_text("like"),
                                    like.number("rate", 0.1, 10).value_or(1),
                                    like.required_text("source")});
      like.finish();
    }
  }
  if (const auto list = reader.required("devices")) {
    for (const JsonValue& item : list->items()) out.devices.push_back(read_device(item));
  }
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
  static constexpr Table kTables[] = {
      {"gemm", read_gemms},          {"attention", read_attentions},
      {"grouped", read_grouped},     {"expert_products", read_expert_products},
      {"memory_bound", read_memory}, {"devices", read_devices}};
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
