// SPDX-License-Identifier: Apache-2.0
#include "core/processor_use.h"

#include "core/row_types.h"

namespace stepcast {

Rows ProcessorUse::fields() {
  using F = ProcessorUse;
  static constexpr Row all[] = {
      row<&F::span_s>("span_s").required().says("all processors' time while the rank measured"),
      row<&F::busy_s>("busy_s").required().says("of it, at work for anybody"),
      row<&F::stolen_s>("stolen_s")
          .required()
          .says("of it, taken by the host of a virtual machine"),
      row<&F::own_s>("own_s").required().says("of the busy time, for the rank itself")};
  return rows_of<F>(all);
}

}  // namespace stepcast
