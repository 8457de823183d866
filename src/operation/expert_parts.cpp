// SPDX-License-Identifier: Apache-2.0
#include "operation/expert_parts.h"

#include "operation/layer_parts.h"  // name_of(Mlp)
#include "operation/work_rows.h"

namespace stepcast {

Rows GroupedGemm::fields() {
  using F = GroupedGemm;
  static constexpr Row all[] = {
      work_row<&F::role>("role"),     work_row<&F::experts>("experts"),
      work_row<&F::rows>("rows"),     work_row<&F::outputs>("outputs"),
      work_row<&F::inputs>("inputs"), work_row<&F::input>("input"),
      work_row<&F::output>("output"), work_row<&F::accumulate>("accumulate"),
      work_row<&F::bias>("bias")};
  return rows_of<F>(all);
}

Rows RouterScores::fields() {
  using F = RouterScores;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::top_k>("top_k"),
                                work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows TokenPermutation::fields() {
  using F = TokenPermutation;
  static constexpr Row all[] = {work_row<&F::move>("move"), work_row<&F::backward>("backward"),
                                work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows ExpertActivation::fields() {
  using F = ExpertActivation;
  static constexpr Row all[] = {work_row<&F::mlp>("mlp"), work_row<&F::backward>("backward"),
                                work_row<&F::type>("type"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows ExpertBias::fields() {
  using F = ExpertBias;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows RouterLoad::fields() {
  using F = RouterLoad;
  static constexpr Row all[] = {work_row<&F::gradient>("gradient"), beside<&F::size>()};
  return rows_of<F>(all);
}

Rows SharedGate::fields() {
  using F = SharedGate;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows HostRead::fields() {
  static constexpr Row all[] = {work_row<&HostRead::figures>("figures")};
  return rows_of<HostRead>(all);
}

}  // namespace stepcast
