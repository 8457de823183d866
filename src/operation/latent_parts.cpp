// SPDX-License-Identifier: Apache-2.0
#include "operation/latent_parts.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows LatentRotary::fields() {
  using F = LatentRotary;
  static constexpr Row all[] = {
      work_row<&F::backward>("backward"), work_row<&F::sequence>("sequence"),
      work_row<&F::heads>("heads"),       work_row<&F::plain>("plain"),
      work_row<&F::rotary>("rotary"),     work_row<&F::value>("value"),
      work_row<&F::type>("type"),         beside<&F::size>()};
  return rows_of<F>(all);
}

Rows JoinColumns::fields() {
  using F = JoinColumns;
  static constexpr Row all[] = {work_row<&F::backward>("backward"), work_row<&F::rows>("rows"),
                                work_row<&F::ranks>("ranks"), work_row<&F::type>("type"),
                                beside<&F::size>()};
  return rows_of<F>(all);
}

Rows JoinRows::fields() {
  static constexpr Row all[] = {work_row<&JoinRows::backward>("backward"),
                                work_row<&JoinRows::type>("type"), beside<&JoinRows::size>()};
  return rows_of<JoinRows>(all);
}

}  // namespace stepcast
