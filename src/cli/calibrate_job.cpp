// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_job.h"

namespace stepcast::cli {

Result<std::string> calibrate_for(const std::vector<std::string>&, const DataRoot&,
                                  const OutputOptions&, const std::string&) {
  return failure({ErrorCode::kNotSupported, "calibrating is not built yet", "", "--calibrate",
                  "name a measured profile with --profile, or use --calibrate never"});
}

}  // namespace stepcast::cli
