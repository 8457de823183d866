// SPDX-License-Identifier: Apache-2.0
#include "cost/profile_forms.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "core/enum_names.h"
#include "cost/profile.h"
#include "cost/profile_curves.h"
#include "operation/memory_bound.h"

namespace stepcast {
namespace {

using Three = std::array<double, 3>;

template <class Form, class Visit>
void each_form_field(Visit visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Form::fields());
}

void read_value(ObjectReader& reader, const auto& field, double& out) {
  std::optional<double> read;
  if (field.unit == FormUnit::kSeconds) {
    if (const auto time = reader.seconds(field.key)) read = time->value();
  } else if (field.unit == FormUnit::kBytes) {
    if (const auto bytes = reader.bytes(field.key)) read = bytes->value();
  } else {
    read = reader.number(field.key, field.least, field.most);
  }
  out = read.value_or(out);
}

// Reads exactly three numbers.
void read_value(ObjectReader& reader, const auto& field, Three& out) {
  const auto list = reader.value(field.key);
  if (!list) return;
  const auto items = list->items();
  if (items.size() != out.size()) {
    list->fail(ErrorCode::kBadValue,
               fmt::format("{} numbers where {} are due", items.size(), out.size()));
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto number = items[i].number();
    if (number && !(*number > 0 && *number < field.most)) {
      items[i].fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *number),
                    "more than 0");
    }
    out[i] = number.value_or(1);
  }
}

void read_value(ObjectReader& reader, const auto& field, KindFactors& out) {
  const auto factors = reader.value(field.key);
  if (!factors) return;
  ObjectReader kinds(*factors);
  for (std::size_t kind = 0; kind < out.size(); ++kind) {
    out[kind] = kinds.number(enum_names<MemoryBoundKind>()[kind], field.least, field.most)
                    .value_or(out[kind]);
  }
  kinds.finish();
}

Json written_value(FormUnit unit, double value) {
  if (unit == FormUnit::kSeconds) return microseconds(value);
  if (unit == FormUnit::kBytes) return fmt::format("{:.4g} B", value);
  return rounded(value);
}
Json written_value(FormUnit, const Three& factors) {
  return {rounded(factors[0]), rounded(factors[1]), rounded(factors[2])};
}
// Factors of 1 are left out.
Json written_value(FormUnit, const KindFactors& factors) {
  Json out = Json::object();
  for (std::size_t kind = 0; kind < factors.size(); ++kind) {
    if (factors[kind] != 1) out[enum_names<MemoryBoundKind>()[kind]] = rounded(factors[kind]);
  }
  return out;
}

}  // namespace

double rounded(double value) {
  if (value == 0) return 0;
  const double digits = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * digits) / digits;
}
std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

template <class Form>
void read_fields(ObjectReader& reader, Form& form) {
  each_form_field<Form>([&](const auto& field) { read_value(reader, field, form.*field.member); });
}

template <class Form>
Json write_form(const Form& form) {
  Json out = Json::object();
  each_form_field<Form>([&](const auto& field) {
    const auto& value = form.*field.member;
    const bool is_usual =
        field.written == FormWritten::kWhereItSays && value == Form{}.*field.member;
    if (field.written == FormWritten::kNever || is_usual) return;
    out[field.key] = written_value(field.unit, value);
  });
  return out;
}

#define STEPCAST_FORM(Form)                                    \
  template void read_fields(ObjectReader& reader, Form& form); \
  template Json write_form(const Form& form);
STEPCAST_FORM(GemmFit)
STEPCAST_FORM(GroupedFit)
STEPCAST_FORM(AttentionFit)
STEPCAST_FORM(MemoryFit)
STEPCAST_FORM(HostFit)
#undef STEPCAST_FORM

}  // namespace stepcast
