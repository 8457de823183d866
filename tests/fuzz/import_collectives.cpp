// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/imported.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"

namespace stepcast::fuzz {

void import_collectives(std::string_view text) {
  Imported out;
  say_errors_of(import_nccl_tests(std::string(text), "all_reduce.txt", some_cluster().spec, out));
}

}  // namespace stepcast::fuzz
