// SPDX-License-Identifier: Apache-2.0
#include "cost/host_memory.h"

#include "core/row_types.h"

namespace stepcast {

Rows HostMemory::fields() {
  using F = HostMemory;
  constexpr auto rate = [](Row one) { return one.required().with_unit().positive(); };
  static constexpr Row all[] = {row<&F::provenance>("provenance").required(),
                                row<&F::cores>("cores").required().within(1, 1 << 16),
                                rate(row<&F::update>("update")),
                                rate(row<&F::update_one_core>("update_one_core")),
                                rate(row<&F::copy_one_core>("copy_one_core"))};
  return rows_of<F>(all);
}

}  // namespace stepcast
