// SPDX-License-Identifier: Apache-2.0
#include "operation/signature.h"

#include <fmt/format.h>

#include <string>

#include "core/enum_names.h"
#include "operation/work_forms.h"

#include "core/data_type.h"
#include "operation/attention_parts.h"
#include "operation/collective.h"
#include "operation/memory_bound.h"
#include "operation/operation.h"
#include "operation/optional_count.h"
#include "operation/product.h"

namespace stepcast {
namespace {

void add(std::string& text, const char* key, std::int64_t number) {
  text += ' ';
  text += key;
  text += ' ';
  text += fmt::format_int(number).c_str();
}

// Every row of a work: which of several it is by its name, a number or a type behind its key, a
// condition by its key where it holds.
void add_row(std::string& text, const Row& row, const void* value);

void add_rows(std::string& text, const Rows& rows, const void* holder) {
  for (const Row& row : rows) {
    if (row.is_signed) add_row(text, row, row.of(holder));
  }
}

void add_row(std::string& text, const Row& row, const void* value) {
  const RowType& type = *row.type;
  const auto add_word = [&](std::string_view word) { (text += ' ') += word; };
  switch (type.kind) {
    case RowKind::kObject:
      return add_rows(text, type.rows(), value);
    case RowKind::kTruth:
      if (type.integer(value) != 0) add_word(row.key);
      return;
    case RowKind::kChoice:
      if (type.names == RowNames(enum_names<DataType>)) add_word(row.key);
      return add_word(type.names()[static_cast<std::size_t>(type.integer(value))]);
    case RowKind::kOptional: {
      const void* held = type.held(value);
      if (held != nullptr) add(text, row.key, type.element->integer(held));
      return;
    }
    case RowKind::kInteger:
      return add(text, row.key, type.integer(value));
    case RowKind::kNumber:
      add_word(row.key);
      return add_word(fmt::format("{}", type.number(value)));
    default:
      return add_word(type.write(value).get_text());  // of its own, a group of ranks
  }
}

std::string text_of(const Gemm& gemm) {
  return fmt::format("gemm {} {}x{}x{}x{} {} {}{}{}", name_of(gemm.role), gemm.batch, gemm.m,
                     gemm.n, gemm.k, name_of(gemm.input), name_of(gemm.output),
                     gemm.accumulate ? " accumulate" : "", gemm.bias ? " bias" : "");
}

std::string text_of(const Attention& a) {
  const auto text = [](const char* key, OptionalCount count) {
    return count ? fmt::format(" {} {}", key, count.value) : "";
  };
  return fmt::format("attention {} {}x{}x{}x{}x{}x{} {} {}", a.backward ? "backward" : "forward",
                     a.batch, a.heads, a.kv_heads, a.query_length, a.key_length, a.head_dim,
                     a.causal ? "causal" : "full", name_of(a.type)) +
         text("value_dim", a.value_dim) + text("window", a.window) + text("chunk", a.chunk) +
         text("sinks", a.sinks);
}

}  // namespace

std::string signature(const Operation& operation) {
  if (const auto* gemm = std::get_if<Gemm>(&operation.work)) return text_of(*gemm);
  if (const auto* attention = std::get_if<Attention>(&operation.work)) return text_of(*attention);
  const WorkForm& form = form_of(operation.work);
  std::string out = form.family;
  add_rows(out, form.rows(), struct_of(operation.work));
  return out;
}

bool is_signature_of_collective(std::string_view signature) {
  return signature.substr(0, signature.find(' ')) == Collective::kFamily;
}

}  // namespace stepcast
