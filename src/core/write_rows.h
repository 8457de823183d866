// SPDX-License-Identifier: Apache-2.0
// Writes a struct by its rows (core/rows.h) as JSON.
#pragma once

#include "core/json_tree.h"
#include "core/rows.h"

namespace stepcast {

// The keys of `holder`, over those that `out` has.
void write_rows(const Rows& rows, const void* holder, Json& out);
Json written_value(const void* value, const RowType& type, const RowRange& range);

template <class Holder>
Json json_of(const Holder& holder) {
  Json out = Json::object();
  write_rows(Holder::fields(), &holder, out);
  return out;
}

}  // namespace stepcast
