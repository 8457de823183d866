// SPDX-License-Identifier: Apache-2.0
#include "operation/attention_parts.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows Attention::fields() {
  using F = Attention;
  static constexpr Row all[] = {work_row<&F::backward>("backward"),
                                work_row<&F::batch>("batch"),
                                work_row<&F::heads>("heads"),
                                work_row<&F::kv_heads>("kv_heads"),
                                work_row<&F::query_length>("query_length"),
                                work_row<&F::key_length>("key_length"),
                                work_row<&F::head_dim>("head_dim"),
                                work_row<&F::causal>("causal"),
                                work_row<&F::type>("type"),
                                work_row<&F::value_dim>("value_dim"),
                                work_row<&F::window>("window"),
                                work_row<&F::chunk>("chunk"),
                                work_row<&F::sinks>("sinks"),
                                work_row<&F::ring_step>("ring_step"),
                                work_row<&F::piece>("piece")};
  return rows_of<F>(all);
}

Rows AttentionSizes::fields() {
  using F = AttentionSizes;
  static constexpr Row all[] = {
      work_row<&F::batch>("batch"),       work_row<&F::heads>("heads"),
      work_row<&F::kv_heads>("kv_heads"), work_row<&F::sequence>("sequence"),
      work_row<&F::head_dim>("head_dim"), work_row<&F::value_dim>("value_dim")};
  return rows_of<F>(all);
}

Rows AttentionProduct::fields() {
  using F = AttentionProduct;
  static constexpr Row all[] = {work_row<&F::kind>("kind"), beside<&F::sizes>(),
                                work_row<&F::type>("type")};
  return rows_of<F>(all);
}

Rows AttentionSoftmax::fields() {
  using F = AttentionSoftmax;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), beside<&F::sizes>(),
                                work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows ContextTranspose::fields() {
  using F = ContextTranspose;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), beside<&F::sizes>(),
                                work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows QkvGather::fields() {
  using F = QkvGather;
  static constexpr Row all[] = {beside<&F::sizes>(), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

}  // namespace stepcast
