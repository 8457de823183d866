// SPDX-License-Identifier: Apache-2.0
// Code that is compiled with -fsanitize=thread calls these at every access to memory. The names are
// those of the sanitizer's runtime (compiler-rt, tsan_interface.h), which is not linked: these
// count instead.
#include "kernels/emulated/traffic.h"

using stepcast::emulated::touch;

#define STEPCAST_ACCESS(bytes)                                                 \
  void __tsan_read##bytes(void* data) { touch(data, bytes, false); }           \
  void __tsan_write##bytes(void* data) { touch(data, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* data) { touch(data, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* data) { touch(data, bytes, true); } \
  void __tsan_read_write##bytes(void* data) {                                  \
    touch(data, bytes, false);                                                 \
    touch(data, bytes, true);                                                  \
  }                                                                            \
  void __tsan_unaligned_read_write##bytes(void* data) { __tsan_read_write##bytes(data); }

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler chose the names.
extern "C" {
STEPCAST_ACCESS(1)
STEPCAST_ACCESS(2)
STEPCAST_ACCESS(4)
STEPCAST_ACCESS(8)
STEPCAST_ACCESS(16)
void __tsan_read_range(void* data, unsigned long bytes) { touch(data, bytes, false); }
void __tsan_write_range(void* data, unsigned long bytes) { touch(data, bytes, true); }
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}
// NOLINTEND(bugprone-reserved-identifier)
