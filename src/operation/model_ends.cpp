// SPDX-License-Identifier: Apache-2.0
#include "operation/model_ends.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows TokenEmbedding::fields() {
  using F = TokenEmbedding;
  static constexpr Row all[] = {work_row<&F::backward>("backward"),
                                work_row<&F::vocab>("vocab"),
                                work_row<&F::type>("type"),
                                work_row<&F::gradient>("gradient"),
                                beside<&F::size>(),
                                work_row<&F::ahead>("ahead")};
  return rows_of<F>(all);
}

Rows PositionEmbedding::fields() {
  using F = PositionEmbedding;
  static constexpr Row all[] = {work_row<&F::backward>("backward"),
                                work_row<&F::sequence>("sequence"),
                                work_row<&F::positions>("positions"),
                                work_row<&F::offset>("offset"),
                                work_row<&F::type>("type"),
                                work_row<&F::gradient>("gradient"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows ZeroTableGradient::fields() {
  using F = ZeroTableGradient;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows CrossEntropy::fields() {
  using F = CrossEntropy;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::type>("type"),
                                beside<&F::size>(), work_row<&F::ahead>("ahead")};
  return rows_of<F>(all);
}

}  // namespace stepcast
