// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/import_text.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void import_kernel_tables(std::string_view text) {
  Imported out;
  say_errors_of(import_text(std::string(text), "tables.json", some_cluster().spec, out));
}

}  // namespace stepcast::fuzz
