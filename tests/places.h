// SPDX-License-Identifier: Apache-2.0
// Says where the sources and the built programs lie. One small file knows it, so that all others
// compile to the same objects in every clone, and the compiler's cache serves each of them.
#pragma once

#include <string>

namespace stepcast {

const std::string& source_folder();
const std::string& program_path();   // of `stepcast`
const std::string& program_folder();  // with `stepcast-rank`, and `tests/`

}  // namespace stepcast
