// SPDX-License-Identifier: Apache-2.0
#include "operation/product.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows Gemm::fields() {
  static constexpr Row all[] = {
      work_row<&Gemm::role>("role"),     work_row<&Gemm::batch>("batch"),
      work_row<&Gemm::m>("m"),           work_row<&Gemm::n>("n"),
      work_row<&Gemm::k>("k"),           work_row<&Gemm::input>("input"),
      work_row<&Gemm::output>("output"), work_row<&Gemm::accumulate>("accumulate"),
      work_row<&Gemm::bias>("bias")};
  return rows_of<Gemm>(all);
}

}  // namespace stepcast
