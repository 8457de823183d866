// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/operation_json.h"

#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/read_rows.h"
#include "core/write_rows.h"
#include "layout/axis_group.h"
#include "operation/operation.h"
#include "operation/phase.h"
#include "operation/work_forms.h"

namespace stepcast {
namespace {

const std::vector<std::string>& families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const WorkForm& form : work_forms()) out.emplace_back(form.family);
    return out;
  }();
  return names;
}

std::size_t one_of(ObjectReader& reader, const char* key, const std::vector<std::string>& names) {
  return reader.required(key) ? reader.choice(key, names).value_or(0) : 0;
}

}  // namespace

Json operation_json(const Operation& operation) {
  const WorkForm& form = form_of(operation.work);
  Json out = {{"work", form.family}, {"name", operation.name}, {"phase", name_of(operation.phase)}};
  write_rows(form.rows(), struct_of(operation.work), out);
  return out;
}

Operation read_operation(const JsonValue& value, OperationNames& names) {
  ObjectReader reader(value);
  const WorkForm& form = work_forms()[one_of(reader, "work", families())];
  Operation out{names.keep(reader.required_text("name")), Phase::kForward, Alias{}, {}, {}};
  out.phase = static_cast<Phase>(one_of(reader, "phase", enum_names<Phase>()));
  if (!value.is_object()) return out;
  read_rows(reader, form.rows(), form.emplace(out.work));
  reader.finish();
  return out;
}

}  // namespace stepcast
