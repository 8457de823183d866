// SPDX-License-Identifier: Apache-2.0
#include "operation/collective.h"

#include "operation/work_rows.h"

namespace stepcast {

Rows Collective::fields() {
  using F = Collective;
  static constexpr Row all[] = {work_row<&F::kind>("kind"),
                                work_row<&F::group>("group"),
                                work_row<&F::bytes>("bytes"),
                                work_row<&F::type>("type"),
                                work_row<&F::overlapped>("overlapped"),
                                work_row<&F::purpose>("purpose"),
                                work_row<&F::copies>("copies"),
                                work_row<&F::store_sms>("store_sms"),
                                work_row<&F::held_sms>("held_sms")};
  return rows_of<F>(all);
}

}  // namespace stepcast
