// SPDX-License-Identifier: Apache-2.0
#include "graphs/wire_format.h"

namespace stepcast {
namespace {

constexpr int kLongestVarint = 10;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    out = out << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return out;
}

}  // namespace

int take_varint(std::string_view text, std::uint64_t& value) {
  value = 0;
  for (int i = 0; i < kLongestVarint; ++i) {
    if (static_cast<std::size_t>(i) >= text.size()) return 0;
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) return i + 1;
  }
  return -1;
}

bool WireReader::fail(const char* words) {
  wrong_ = words;
  rest_ = {};
  return false;
}

bool WireReader::next_varint(std::uint64_t& value) {
  if (rest_.empty()) return false;
  const int taken = take_varint(rest_, value);
  if (taken <= 0) return fail("a number does not end");
  rest_.remove_prefix(static_cast<std::size_t>(taken));
  return true;
}

bool WireReader::next(WireField& field) {
  std::uint64_t key = 0;
  if (!next_varint(key)) return false;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.type = static_cast<WireType>(key & 7);
  field.bytes = {};
  std::size_t size = 0;
  switch (field.type) {
    case WireType::kVarint:
      return next_varint(field.value) || fail("a field has no value");
    case WireType::kEightBytes:
      size = 8;
      break;
    case WireType::kFourBytes:
      size = 4;
      break;
    case WireType::kBytes: {
      std::uint64_t length = 0;
      if (!next_varint(length)) return fail("a field has no length");
      if (length > rest_.size()) return fail("a field is longer than its message");
      field.bytes = rest_.substr(0, static_cast<std::size_t>(length));
      rest_.remove_prefix(field.bytes.size());
      return true;
    }
    default:
      return fail("a field has a wire type that does not exist");
  }
  if (size > rest_.size()) return fail("a field is longer than its message");
  field.value = little_endian(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return true;
}

void WireWriter::append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void WireWriter::varint(std::uint32_t number, std::uint64_t value) {
  append_varint(text_, std::uint64_t{number} << 3);
  append_varint(text_, value);
}

void WireWriter::bytes(std::uint32_t number, std::string_view text) {
  append_varint(text_, std::uint64_t{number} << 3 | 2);
  append_varint(text_, text.size());
  text_ += text;
}

}  // namespace stepcast
