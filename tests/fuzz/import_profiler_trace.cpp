// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/imported.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "traces/profiler_trace.h"

namespace stepcast::fuzz {

void import_profiler_trace(std::string_view text) {
  Imported out;
  say_errors_of(trace_of(text, "rank0.json"));
  say_errors_of(import_trace(std::string(text), "trace.json", some_cluster().spec, out));
}

}  // namespace stepcast::fuzz
