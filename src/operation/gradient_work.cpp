// SPDX-License-Identifier: Apache-2.0
#include "operation/gradient_work.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows BiasGradient::fields() {
  using F = BiasGradient;
  static constexpr Row all[] = {work_row<&F::type>("type"), work_row<&F::gradient>("gradient"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows Accumulate::fields() {
  using F = Accumulate;
  static constexpr Row all[] = {work_row<&F::from>("from"), work_row<&F::to>("to"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows Cast::fields() {
  static constexpr Row all[] = {
      work_row<&Cast::subject>("subject"), work_row<&Cast::backward>("backward"),
      work_row<&Cast::from>("from"), work_row<&Cast::to>("to"), beside<&Cast::size>()};
  return rows_of<Cast>(all);
}

Rows UnitCopy::fields() {
  static constexpr Row all[] = {work_row<&UnitCopy::backward>("backward"),
                                work_row<&UnitCopy::elements>("elements"),
                                work_row<&UnitCopy::bytes>("bytes")};
  return rows_of<UnitCopy>(all);
}

Rows ZeroGradients::fields() {
  using F = ZeroGradients;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows UnscaleGradients::fields() {
  using F = UnscaleGradients;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows SquaredNorm::fields() {
  using F = SquaredNorm;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows ClipGradients::fields() {
  using F = ClipGradients;
  static constexpr Row all[] = {work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows OptimizerUpdate::fields() {
  using F = OptimizerUpdate;
  static constexpr Row all[] = {work_row<&F::gradient>("gradient"), work_row<&F::clips>("clips"),
                                work_row<&F::rounds>("rounds"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows BalanceUpdate::fields() {
  using F = BalanceUpdate;
  static constexpr Row all[] = {work_row<&F::gradient>("gradient"), work_row<&F::rounds>("rounds"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

}  // namespace stepcast
