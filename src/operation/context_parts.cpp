// SPDX-License-Identifier: Apache-2.0
#include "operation/context_parts.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows ContextSizes::fields() {
  using F = ContextSizes;
  static constexpr Row all[] = {
      work_row<&F::batch>("batch"),     work_row<&F::rows>("rows"),
      work_row<&F::heads>("heads"),     work_row<&F::kv_heads>("kv_heads"),
      work_row<&F::key_dim>("key_dim"), work_row<&F::value_dim>("value_dim"),
      work_row<&F::ranks>("ranks")};
  return rows_of<F>(all);
}

Rows ContextCopy::fields() {
  using F = ContextCopy;
  static constexpr Row all[] = {work_row<&F::move>("move"),
                                work_row<&F::of>("of"),
                                work_row<&F::backward>("backward"),
                                beside<&F::sizes>(),
                                work_row<&F::copies>("copies"),
                                work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows PartialMerge::fields() {
  using F = PartialMerge;
  static constexpr Row all[] = {work_row<&F::of>("of"),
                                work_row<&F::backward>("backward"),
                                beside<&F::sizes>(),
                                work_row<&F::is_first>("is_first"),
                                work_row<&F::ring_step>("ring_step"),
                                work_row<&F::piece>("piece"),
                                work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

}  // namespace stepcast
