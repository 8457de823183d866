// SPDX-License-Identifier: Apache-2.0
// Reads a struct by its rows (core/rows.h). A key that is not there leaves its member as it is;
// what is missing, of another type, out of range or unknown is an error of the value's document.
#pragma once

#include "core/json.h"
#include "core/rows.h"

namespace stepcast {

// The keys that the object has, over what `holder` holds. The caller calls reader.finish().
void read_rows(ObjectReader& reader, const Rows& rows, void* holder);
// False where the value is no such one, and then `out` is as it was.
bool read_value(const JsonValue& value, const RowType& type, const RowRange& range, void* out);

template <class Holder>
void read_keys(ObjectReader& reader, Holder& out) {
  read_rows(reader, Holder::fields(), &out);
}

template <class Holder>
Holder read_object(const JsonValue& value) {
  Holder out{};
  ObjectReader reader(value);
  read_keys(reader, out);
  reader.finish();
  if constexpr (requires { out.check(value); }) out.check(value);
  return out;
}

}  // namespace stepcast
