// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers' wire format, as far as execution traces need it: fields of a message one after
// the other, and their values (protobuf.dev/programming-guides/encoding). It allocates nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

enum class WireType : std::uint8_t { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;  // of a varint, and the bits of a fixed number
  std::string_view bytes;   // of a text, a message or a packed list
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // False at the end, and where the message is damaged.
  bool next(WireField& field);
  // Packed values, one after the other.
  bool next_varint(std::uint64_t& value);
  const char* wrong() const { return wrong_; }  // null: nothing

 private:
  bool fail(const char* words);
  std::string_view rest_;
  const char* wrong_ = nullptr;
};

// Takes a varint from the front. Returns how many bytes it had; 0: more are needed; -1: it is none.
int take_varint(std::string_view text, std::uint64_t& value);

// Writes a message field by field.
class WireWriter {
 public:
  void varint(std::uint32_t number, std::uint64_t value);
  void bytes(std::uint32_t number, std::string_view text);
  void packed(std::uint32_t number, const std::string& values) { bytes(number, values); }
  const std::string& text() const { return text_; }
  void clear() { text_.clear(); }

  static void append_varint(std::string& out, std::uint64_t value);

 private:
  std::string text_;
};

}  // namespace stepcast
