// SPDX-License-Identifier: Apache-2.0
// Flat elements that are whole for a while: gathered parameters, gradients before their reduction.
// A window may open in parts (a unit whose blocks run at different times); only open parts are
// counted.
#pragma once

#include <vector>

#include "execute/storage.h"
#include "program/element_range.h"

namespace stepcast {

class Windows {
 public:
  // Elements are of `type`, and count as many bytes until all of their unit are open. Then each
  // counts `bytes`, with the copies that are made of a whole unit. `stream` writes them first.
  Windows(Memory& memory, DataType type, ByteCount bytes, Stream stream)
      : memory_(&memory), type_(type), bytes_(bytes), stream_(stream) {}

  // Opens `range`, a part of `unit`, the elements that are reduced or gathered together.
  void open(ElementRange range, ElementRange unit);
  void close(ElementRange range);  // all windows inside
  bool has(ElementRange range) const;
  Array at(std::int64_t element) const;

  // True at the first call for a parameter since its window opened: what is there is not a value.
  bool is_fresh(ElementRange parameter);

 private:
  struct Window {
    ElementRange unit;
    Tensor data;          // of the whole unit
    std::int64_t opened;  // elements
    ByteCount counted;
    std::vector<std::int64_t> written;  // begins of parameters
  };
  Window* find(std::int64_t element);
  const Window* find(std::int64_t element) const;

  Memory* memory_;
  DataType type_;
  ByteCount bytes_;
  Stream stream_;
  std::vector<Window> windows_;
};

}  // namespace stepcast
