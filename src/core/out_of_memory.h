// SPDX-License-Identifier: Apache-2.0
// The end of a program that runs out of memory where no exception may leave: in a destructor of a
// library, for example, that takes memory to give memory back.
#pragma once

namespace stepcast {

// From here on std::terminate() calls `last_words`, which must take no memory, and ends the process
// with `code` when an allocation has failed before; else it does what it did. Call once, in main.
void end_without_memory(void (*last_words)(), int code);

}  // namespace stepcast
