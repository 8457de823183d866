// SPDX-License-Identifier: Apache-2.0
#include "operation/memory_bound.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows KernelSize::fields() {
  using F = KernelSize;
  static constexpr Row all[] = {work_row<&F::elements>("elements"), work_row<&F::width>("width"),
                                work_row<&F::bytes>("bytes"),
                                work_row<&F::launches>("launches").not_signed()};
  return rows_of<F>(all);
}

}  // namespace stepcast
