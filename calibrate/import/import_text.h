// SPDX-License-Identifier: Apache-2.0
// The reader of one text, by what is in it.
#pragma once

#include "calibrate/import/imported.h"

namespace stepcast {

// `file` is for errors.
Result<void> import_text(const std::string& text, const std::string& file,
                         const ClusterSpec& cluster, Imported& out);

}  // namespace stepcast
