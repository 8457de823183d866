// SPDX-License-Identifier: Apache-2.0
// Writes the files that ship as C++ for the layer `shipped`; runs where the program is built:
//
//   stepcast_pack LIST OUTPUT     each line of LIST: the path in the program, a tab, the file
//
// JSON is packed (core/packed_json.h), other files stay as they are.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/packed_json.h"

namespace stepcast {
namespace {

using nlohmann::json;

template <class T>
void put(std::string& out, T number) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &number, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<PackedCount>(text.size()));
  out += text;
}

void pack(std::string& out, const json& value) {
  if (value.is_null()) {
    put(out, PackedTag::kNull);
  } else if (value.is_boolean()) {
    put(out, value.get<bool>() ? PackedTag::kTrue : PackedTag::kFalse);
  } else if (value.is_number_float()) {
    put(out, PackedTag::kFloat);
    put(out, value.get<double>());
  } else if (value.is_number_unsigned() &&
             value.get<std::uint64_t>() <= std::numeric_limits<PackedCount>::max()) {
    put(out, PackedTag::kSmall);
    put(out, value.get<PackedCount>());
  } else if (value.is_number_unsigned()) {
    put(out, PackedTag::kUnsigned);
    put(out, value.get<std::uint64_t>());
  } else if (value.is_number()) {
    put(out, PackedTag::kInteger);
    put(out, value.get<std::int64_t>());
  } else if (value.is_string()) {
    put(out, PackedTag::kText);
    put_text(out, value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    put(out, PackedTag::kArray);
    put(out, static_cast<PackedCount>(value.size()));
    for (const json& element : value) pack(out, element);
  } else {
    put(out, PackedTag::kObject);
    put(out, static_cast<PackedCount>(value.size()));
    for (const auto& [key, held] : value.items()) {
      put_text(out, key);
      pack(out, held);
    }
  }
}

// The parser would keep the last of two keys that are the same.
json parse(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  const auto look = [&keys](int, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed).second) {
      throw std::runtime_error("the key " + parsed.dump() + " stands twice");
    }
    return true;
  };
  return json::parse(text, look);
}

// Writes bytes as a literal of C++. A digit behind an escape would be part of it, were it shorter
// than three.
std::string literal(std::string_view bytes) {
  std::string out = "\"";
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain =
        byte >= 0x20 && byte < 0x7f && letter != '"' && letter != '\\' && letter != '?';
    if (is_plain) {
      out += letter;
    } else {
      out += '\\';
      for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + ((byte >> shift) & 7));
    }
  }
  return out + "\"";
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& list, const std::string& output) {
  std::vector<std::pair<std::string, std::string>> files;  // path and file
  std::ifstream lines(list);
  if (!lines) throw std::runtime_error(list + ": cannot be read");
  for (std::string path, file; std::getline(lines, path, '\t') && std::getline(lines, file);) {
    files.emplace_back(path, file);
  }
  std::sort(files.begin(), files.end());
  std::string bytes, table;
  std::size_t begin = 0;
  for (const auto& [path, file] : files) {
    const bool is_packed = file.ends_with(".json");
    std::string held;
    try {
      held = text_of(file);
      if (is_packed) pack(held = {}, parse(text_of(file)));
    } catch (const std::exception& error) {
      throw std::runtime_error(file + ": " + error.what());
    }
    bytes += "\n    " + literal(held);
    table += "\n    {" + literal("shipped:/" + path) + ", {kBytes + " + std::to_string(begin) +
             ", " + std::to_string(held.size()) + "}, " + (is_packed ? "true" : "false") + "},";
    begin += held.size();
  }
  std::ofstream out(output, std::ios::binary);
  out << "// Made by cmake/pack_data.cpp.\n#include <span>\n\n#include \"core/carried_files.h\"\n\n"
         "namespace stepcast {\nnamespace {\n\nconstexpr char kBytes[] ="
      << bytes << ";\nconstexpr CarriedFile kFiles[] = {" << table
      << "\n};\n\n}  // namespace\n\nstd::span<const CarriedFile> shipped_files();\n"
         "std::span<const CarriedFile> shipped_files() { return kFiles; }\n\n"
         "}  // namespace stepcast\n";
  if (!out.flush()) throw std::runtime_error(output + ": cannot be written");
}

}  // namespace
}  // namespace stepcast

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("usage: stepcast_pack LIST OUTPUT\n", stderr);
    return 2;
  }
  try {
    stepcast::write(words[1], words[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast_pack: %s\n", error.what());
    return 1;
  }
}
