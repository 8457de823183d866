// SPDX-License-Identifier: Apache-2.0
#include "operation/layer_parts.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows Normalization::fields() {
  using F = Normalization;
  static constexpr Row all[] = {work_row<&F::norm>("norm"),
                                work_row<&F::backward>("backward"),
                                work_row<&F::bias>("bias"),
                                work_row<&F::residual>("residual"),
                                work_row<&F::branch_bias>("branch_bias"),
                                work_row<&F::type>("type"),
                                work_row<&F::gradient>("gradient"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows QueryKeyNorm::fields() {
  using F = QueryKeyNorm;
  static constexpr Row all[] = {
      work_row<&F::backward>("backward"), work_row<&F::query>("query"),
      work_row<&F::key>("key"),           work_row<&F::query_norm>("query_norm"),
      work_row<&F::key_norm>("key_norm"), work_row<&F::type>("type"),
      work_row<&F::gradient>("gradient"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows Activation::fields() {
  using F = Activation;
  static constexpr Row all[] = {
      work_row<&F::mlp>("mlp"),   work_row<&F::backward>("backward"),
      work_row<&F::bias>("bias"), work_row<&F::bias_gradient>("bias_gradient"),
      work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows Rotary::fields() {
  static constexpr Row all[] = {work_row<&Rotary::backward>("backward"),
                                work_row<&Rotary::sequence>("sequence"),
                                work_row<&Rotary::heads>("heads"),
                                work_row<&Rotary::kv_heads>("kv_heads"),
                                work_row<&Rotary::head_dim>("head_dim"),
                                work_row<&Rotary::type>("type"),
                                beside<&Rotary::size>()};
  return rows_of<Rotary>(all);
}

Rows ResidualAdd::fields() {
  using F = ResidualAdd;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::bias>("bias"),
                                work_row<&F::dropout>("dropout"), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows Dropout::fields() {
  static constexpr Row all[] = {work_row<&Dropout::backward>("backward"),
                                work_row<&Dropout::type>("type"), beside<&Dropout::size>()};
  return rows_of<Dropout>(all);
}

Rows AdapterAdd::fields() {
  using F = AdapterAdd;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows AdapterScale::fields() {
  using F = AdapterScale;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

}  // namespace stepcast
