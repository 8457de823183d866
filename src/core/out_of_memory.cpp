// SPDX-License-Identifier: Apache-2.0
#include "core/out_of_memory.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

namespace stepcast {
namespace {

// Handlers of the language take no arguments.
struct End {
  std::atomic<bool> allocation_failed{false};
  void (*last_words)() = nullptr;
  std::terminate_handler before = nullptr;
  int code = 0;
};
End& the_end() {
  static End end;
  return end;
}

// operator new asks a handler for memory before it throws. This one has none.
void note_failed_allocation() {
  the_end().allocation_failed = true;
  throw std::bad_alloc();
}

[[noreturn]] void end() {
  if (the_end().allocation_failed) {
    the_end().last_words();
    std::_Exit(the_end().code);
  }
  the_end().before();
  std::abort();
}

}  // namespace

void end_without_memory(void (*last_words)(), int code) {
  the_end().last_words = last_words;
  the_end().code = code;
  std::set_new_handler(note_failed_allocation);
  the_end().before = std::set_terminate(end);
}

}  // namespace stepcast
