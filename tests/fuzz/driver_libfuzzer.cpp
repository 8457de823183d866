// SPDX-License-Identifier: Apache-2.0
// libFuzzer drives the target: `fuzz_targets --target=NAME` takes its flags.
#include <cstdint>

#include "fuzz/target.h"

namespace {
const stepcast::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  chosen = stepcast::fuzz::target_of_words(*count, *words);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  chosen->run(text.substr(0, chosen->most_bytes));
  return 0;
}
