// SPDX-License-Identifier: Apache-2.0
#include "recipes/megatron_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace stepcast {
namespace {

constexpr std::size_t kLongest = 1 << 20;  // letters after all repetitions

// The count at `at`, which is moved behind it; 0 when there is none.
std::size_t count_at(std::string_view text, std::size_t& at) {
  std::size_t count = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) &&
         count < kLongest) {
    count = count * 10 + static_cast<std::size_t>(text[at] - '0');
    ++at;
  }
  return count;
}

// "(ab)*3" and then "x*3", as Megatron unrolls them: brackets do not nest.
std::optional<std::string> unrolled(std::string_view text) {
  std::string flat;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '(') {
      flat += text[at++];
      continue;
    }
    const std::size_t close = text.find(')', at);
    if (close == std::string_view::npos || text.substr(close).size() < 2 || text[close + 1] != '*')
      return std::nullopt;
    std::size_t behind = close + 2;
    const std::size_t count = count_at(text, behind);
    if (count == 0 || (close - at) * count > kLongest) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) flat += text.substr(at + 1, close - at - 1);
    at = behind;
  }
  std::string out;
  for (std::size_t at = 0; at < flat.size();) {
    if (flat[at] != '*') {
      out += flat[at++];
      continue;
    }
    const std::size_t count = count_at(flat, ++at);
    if (out.empty() || count == 0 || out.size() + count > kLongest) return std::nullopt;
    out.append(count - 1, out.back());
  }
  return out;
}

// sum := product ('+' product)*, product := atom ('*' count)*, atom := '(' sum ')' | '[' 0|1,...
// ']'
class ListExpression {
 public:
  explicit ListExpression(std::string_view text) : text_(text) {}

  std::optional<std::vector<bool>> whole() {
    auto out = sum(0);
    return good_ && at_ == text_.size() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::vector<bool> sum(int depth) {
    auto out = product(depth);
    while (good_ && take('+')) {
      const auto more = product(depth);
      out.insert(out.end(), more.begin(), more.end());
    }
    return out;
  }

  std::vector<bool> product(int depth) {
    auto out = atom(depth);
    while (good_ && take('*')) {
      const std::size_t count = count_at(text_, at_);
      good_ = count > 0 && out.size() * count <= kLongest;
      const std::size_t once = out.size();
      for (std::size_t i = once; good_ && i < once * count; ++i) out.push_back(out[i - once]);
    }
    return out;
  }

  std::vector<bool> atom(int depth) {
    std::vector<bool> out;
    if (take('(')) {
      good_ = depth < 64;
      if (good_) out = sum(depth + 1);
      good_ = good_ && take(')');
      return out;
    }
    good_ = take('[');
    while (good_ && !take(']')) {
      const bool one = take('1');
      good_ = one || take('0');
      out.push_back(one);
      take(',');
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool good_ = true;
};

std::string without_blanks(std::string_view text, std::string_view blanks) {
  std::string out(text);
  std::erase_if(out, [&](char c) { return blanks.find(c) != std::string_view::npos; });
  return out;
}

}  // namespace

std::optional<LayoutText> read_layout_text(std::string_view text) {
  const auto letters = unrolled(without_blanks(text, ", "));
  if (!letters || letters->empty()) return std::nullopt;
  LayoutText out;
  out.layers.push_back(0);
  for (const char letter : *letters) {
    if (letter == '|') {
      out.layers.push_back(0);
    } else if (letter == 't') {
      ++out.layers.back();
    } else if (letter == 'm') {
      ++out.mtp;
      out.last_mtp = static_cast<std::int64_t>(out.layers.size()) - 1;
    } else if (letter != 'E' && letter != 'L') {
      return std::nullopt;
    }
  }
  return out;
}

std::string layout_text(const std::vector<std::int64_t>& layers, std::int64_t mtp, bool apart) {
  const std::string modules(static_cast<std::size_t>(mtp), 'm');
  std::string out;
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    if (chunk > 0) out += "|";
    if (chunk == 0) out += "E";
    if (layers[chunk] > 0) out += fmt::format("t*{}", layers[chunk]);
    if (chunk + (apart ? 2 : 1) == layers.size()) out += modules;
    if (chunk + 1 == layers.size()) out += "L";
  }
  return out;
}

std::optional<std::vector<bool>> read_layer_pattern(std::string_view text, std::int64_t layers) {
  const std::string expression = without_blanks(text, " ");
  std::size_t at = 0;
  const std::size_t every = count_at(expression, at);
  if (at > 0) {
    if (at != expression.size() || every == 0) return std::nullopt;
    std::vector<bool> out;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      out.push_back(layer % static_cast<std::int64_t>(every) == 0);
    }
    return out;
  }
  auto out = ListExpression(expression).whole();
  if (!out || static_cast<std::int64_t>(out->size()) != layers) return std::nullopt;
  return out;
}

std::string layer_pattern(const std::vector<bool>& pattern) {
  std::string out;
  for (std::size_t begin = 0; begin < pattern.size();) {
    std::size_t end = begin;
    while (end < pattern.size() && pattern[end] == pattern[begin]) ++end;
    out += fmt::format("{}[{}]*{}", out.empty() ? "(" : "+", pattern[begin] ? 1 : 0, end - begin);
    begin = end;
  }
  return out + ")";
}

}  // namespace stepcast
