// SPDX-License-Identifier: Apache-2.0
// Names in their order: those of an enum class whose values count from 0, in the words of its
// name_of(), and those that a program spells out: words<"full", "causal">().
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// Whether a value has a name in its enum's declaration: compilers write a value without one as a
// cast, "(Norm)2".
template <auto Value>
consteval bool is_declared() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return text[text.find("Value = ") + std::string_view("Value = ").size()] != '(';
}

template <class Enum, int first = 0>
consteval int enum_count() {
  if constexpr (is_declared<static_cast<Enum>(first)>()) {
    return enum_count<Enum, first + 1>();
  } else {
    return first;
  }
}

template <class Enum>
const std::vector<std::string>& enum_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (int i = 0; i < enum_count<Enum>(); ++i) out.emplace_back(name_of(static_cast<Enum>(i)));
    return out;
  }();
  return names;
}

template <std::size_t size>
struct FixedText {
  char text[size];
  constexpr FixedText(const char (&literal)[size]) { std::copy_n(literal, size, text); }
};

template <FixedText... literals>
const std::vector<std::string>& words() {
  static const std::vector<std::string> names{literals.text...};
  return names;
}

}  // namespace stepcast
