// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutation.h"

#include <algorithm>
#include <charconv>

namespace stepcast::fuzz {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "3",
                                    "7",
                                    "64",
                                    "1e9",
                                    "1e18",
                                    "1e300",
                                    "1e999",
                                    "1e-300",
                                    "1e-12",
                                    "0.5",
                                    "1.5",
                                    "4096",
                                    "65536",
                                    "1048576",
                                    "2147483648",
                                    "1099511627776",
                                    "9223372036854775807",
                                    "18446744073709551616"};
constexpr std::string_view kDigits = "0123456789";

// The byte that two hexadecimal digits give, as in \x0A.
char byte_of(std::string_view digits) {
  unsigned char byte = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  return static_cast<char>(byte);
}

}  // namespace

std::vector<std::string> words_of_dictionary(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() < 2 || line.front() != '"') continue;
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      const bool is_escape = line[i] == '\\';
      if (is_escape) ++i;
      if (is_escape && line[i] == 'x') {
        word += byte_of(line.substr(i + 1, 2));
        i += 2;
      } else {
        word += line[i];
      }
    }
    out.push_back(std::move(word));
  }
  return out;
}

Mutation::Mutation(std::uint64_t seed, const std::vector<std::string>& seeds,
                   std::vector<std::string> words)
    : seeds_(seeds), words_(std::move(words)), random_(seed, 0) {}

std::size_t Mutation::below(std::size_t count) {
  return count == 0
             ? 0
             : std::min(count - 1,
                        static_cast<std::size_t>(random_.uniform() * static_cast<double>(count)));
}

std::string Mutation::part_of(const std::string& text) {
  const std::size_t begin = below(text.size());
  return text.substr(begin, 1 + below(std::min<std::size_t>(text.size() - begin, 64)));
}

void Mutation::change_number(std::string& text) {
  const std::size_t begin = text.find_first_of(kDigits, below(text.size()));
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
  text.replace(begin, end - begin, kNumbers[below(std::size(kNumbers))]);
}

void Mutation::change(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  switch (below(9)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(below(256));
      break;
    case 1:
      text.insert(at, 1, static_cast<char>(below(256)));
      break;
    case 2:
      if (at < text.size()) text.erase(at, 1 + below(16));
      break;
    case 3:
      if (!text.empty()) text.insert(at, part_of(text));
      break;
    case 4:
      text.insert(at, part_of(seeds_[below(seeds_.size())] + " "));
      break;
    case 5:
      if (!words_.empty()) text.insert(at, words_[below(words_.size())]);
      break;
    case 6:
      if (!words_.empty()) {
        const std::string& word = words_[below(words_.size())];
        text.replace(at, std::min(word.size(), text.size() - at), word);
      }
      break;
    default:
      change_number(text);
  }
}

std::string Mutation::next() {
  std::string text = seeds_[below(seeds_.size())];
  for (std::size_t left = 1 + below(8); left > 0; --left) change(text);
  return text;
}

}  // namespace stepcast::fuzz
