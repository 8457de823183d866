// SPDX-License-Identifier: Apache-2.0
#include "core/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/limits.h"
#include "core/work_limits.h"

namespace stepcast {
namespace {

constexpr const char* kBlanks = " \t\r\n";

// Says what a person would mend at the last byte of `read`, all that the parser took in; `said` is
// how it put it.
std::string what_to_mend(std::string_view read, std::string_view said) {
  const auto says = [&](std::string_view words) { return said.find(words) != said.npos; };
  const char at = read.back();
  const std::string_view before = read.substr(0, read.size() - 1);
  if (at == '#' || at == '/') return "JSON has no comments";
  if (at == '\'') return "JSON has double quotes only";
  if (says("invalid literal")) return "bare words other than true, false and null need quotes";
  if (at == '}' || at == ']') {
    const std::size_t last = before.find_last_not_of(kBlanks);
    if (last != before.npos && before[last] == ',') {
      return fmt::format("nothing stands between the last comma and '{}'", at);
    }
  }
  if (says("expected end of input")) return "the object is closed before it";
  if (says("control character")) return "a text ends on the line on which it begins";
  if (says("; expected '}'") || says("; expected ']'")) {
    return "a comma or a closing bracket is missing before it";
  }
  if (says("; expected ':'")) return "a colon is missing before it";
  if (says("object key")) return "a key in double quotes is missing before it";
  return "it makes no sense from there on";
}

// "line 3, column 7" of the last byte of `read`.
std::string place_of_last(std::string_view read) {
  const std::string_view before = read.substr(0, read.size() - 1);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t last_end = before.rfind('\n');
  const std::size_t column = last_end == before.npos ? read.size() : read.size() - last_end - 1;
  return fmt::format("line {}, column {}", line, column);
}

// The parser says "number overflow parsing '1e999'", and not where.
std::string what_is_too_large(std::string_view text, std::string_view said) {
  const std::size_t begin = said.find('\'');
  const std::size_t end = said.rfind('\'');
  if (begin == said.npos || end <= begin + 1) return "a number is too large";
  const std::string_view number = said.substr(begin + 1, end - begin - 1);
  const std::size_t at = text.find(number);
  const std::string what = fmt::format("the number {} is too large", number);
  if (at == text.npos) return what;
  return fmt::format("{}: {}", place_of_last(text.substr(0, at + 1)), what);
}

// Puts the parser's error for people who do not write parsers: "not valid JSON: line 3, column 7:
// JSON has no comments".
std::string why_not_json(std::string_view text, const std::exception& error) {
  const std::string prefix = "not valid JSON: ";
  const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (text.find_first_not_of(kBlanks) == text.npos) return prefix + "it is empty";
  if (syntax == nullptr) return prefix + what_is_too_large(text, error.what());
  if (syntax->byte > text.size()) {
    return prefix + "it ends before its last bracket or quote is closed";
  }
  const std::string_view read = text.substr(0, std::max<std::size_t>(syntax->byte, 1));
  return fmt::format("{}{}: {}", prefix, place_of_last(read), what_to_mend(read, error.what()));
}

// Takes what the library's parser reads. Each function says whether it shall read on.
template <class Tree>
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const JsonRules& rules) : text_(text), rules_(rules) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // no JSON has it
  bool start_object(std::size_t) override { return open(Tree::object()); }
  bool start_array(std::size_t) override { return open(Tree::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    open_.back()->items().emplace_back(std::move(name), Tree());
    return true;
  }

  bool end_object() override {
    Tree& object = *open_.back();
    Members& members = object.items();
    if constexpr (kIsSorted) {
      if (!std::ranges::is_sorted(members, {}, key_of))
        std::ranges::stable_sort(members, {}, key_of);
    }
    if (const std::string* twice = key_that_stands_twice(members)) {
      if (rules_.unique_keys) {
        return refuse({ErrorCode::kSyntax, fmt::format("the key '{}' stands twice", *twice), "",
                       *twice, "keep one of them"});
      }
      Tree last = Tree::object();  // as a parser that keeps the last one silently
      for (auto& [name, value] : members) last[name] = std::move(value);
      object = std::move(last);
    }
    if constexpr (kIsSorted) {
      if (rules_.keep_object && !rules_.keep_object(object)) return drop();
    }
    return close();
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& why) override {
    return refuse({ErrorCode::kSyntax, why_not_json(text_, why), "", "", ""});
  }

  Result<Tree> result(const std::string& file) {
    if (!error_) return std::move(root_);
    error_->file = file;
    return failure(std::move(*error_));
  }

 private:
  using Members = typename Tree::Members;
  static constexpr std::size_t kBetweenLooks =
      4096;  // values between two questions whether to stop
  static constexpr bool kIsSorted = std::is_same_v<Tree, SortedJson>;

  static std::string_view key_of(const typename Tree::Member& member) { return member.first; }

  static const std::string* key_that_stands_twice(const Members& members) {
    if constexpr (kIsSorted) {
      const auto found = std::ranges::adjacent_find(members, {}, key_of);
      return found == members.end() ? nullptr : &found->first;
    } else {
      std::vector<const std::string*> keys;
      for (const auto& member : members) keys.push_back(&member.first);
      const auto text = [](const std::string* key) -> const std::string& { return *key; };
      std::ranges::sort(keys, {}, text);
      const auto found = std::ranges::adjacent_find(keys, {}, text);
      return found == keys.end() ? nullptr : *found;
    }
  }

  bool refuse(Error error) {
    error_ = std::move(error);
    return false;
  }

  Tree& put(Tree value) {
    if (++values_ % kBetweenLooks == 0) end_if_stopped();
    if (open_.empty()) return root_ = std::move(value);
    Tree& around = *open_.back();
    if (around.is_array()) return around.emplace_back(std::move(value));
    return around.items().back().second = std::move(value);
  }
  bool add(Tree value) {
    if (values_ >= kMostJsonValues) return refuse_more();
    put(std::move(value));
    return true;
  }
  bool refuse_more() {
    return refuse({ErrorCode::kTooMuch,
                   fmt::format("holds more than {} numbers, texts and lists", kMostJsonValues), "",
                   "", "no file of this kind has as many"});
  }

  bool open(Tree empty) {
    if (open_.size() >= kDeepestDocument) {
      return refuse({ErrorCode::kSyntax,
                     fmt::format("nests deeper than {} levels", kDeepestDocument), "", "",
                     "no file of this kind has more than ten"});
    }
    if (values_ >= kMostJsonValues) return refuse_more();
    open_.push_back(&put(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // The object that has just been read leaves what is around it.
  bool drop() {
    close();
    if (open_.empty()) {
      root_ = {};
    } else if (open_.back()->is_array()) {
      open_.back()->pop_back();
    } else {
      open_.back()->items().pop_back();
    }
    return true;
  }

  std::string_view text_;
  const JsonRules& rules_;
  Tree root_;
  std::size_t values_ = 0;
  std::vector<Tree*> open_;  // containers that are not read whole yet
  std::optional<Error> error_;
};

template <class Tree>
Result<Tree> parse(std::string_view text, const std::string& file, const JsonRules& rules) {
  // The library takes a NUL for the end of the text, and what stands behind it for nothing.
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {
    return failure({ErrorCode::kSyntax,
                    fmt::format("not valid JSON: {}: a NUL, which no text has",
                                place_of_last(text.substr(0, nul + 1))),
                    file, "", "the file as it was written: copy it anew"});
  }
  TreeBuilder<Tree> builder(text, rules);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder,
                            nlohmann::json::input_format_t::json, true, rules.comments);
  return builder.result(file);
}

}  // namespace

Result<SortedJson> parse_json(std::string_view text, const std::string& file,
                              const JsonRules& rules) {
  return parse<SortedJson>(text, file, rules);
}

Result<Json> parse_ordered_json(std::string_view text, const std::string& file) {
  return parse<Json>(text, file, {});
}

}  // namespace stepcast
