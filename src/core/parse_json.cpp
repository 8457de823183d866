// SPDX-License-Identifier: Apache-2.0
#include "core/parse_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/json_syntax.h"
#include "core/limits.h"
#include "core/plain_json.h"

namespace stepcast {
namespace {

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
    key_ = std::move(name);
    if (!rules_.unique_keys || keys_.back().insert(key_).second) return true;
    // A parser would silently keep the last one.
    return refuse({ErrorCode::kSyntax, fmt::format("the key '{}' stands twice", key_), "", key_,
                   "keep one of them"});
  }

  bool end_object() override {
    if constexpr (std::is_same_v<Tree, SortedJson>) {
      const bool keep = !rules_.keep_object || rules_.keep_object(*open_.back().tree);
      if (!keep) return drop();
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
  // A container that is not read whole yet, and its key in the one around it.
  struct Open {
    Tree* tree;
    std::string key;
  };

  bool refuse(Error error) {
    error_ = std::move(error);
    return false;
  }

  Tree& put(Tree value) {
    if (open_.empty()) return root_ = std::move(value);
    Tree& around = *open_.back().tree;
    if (around.is_array()) return around.emplace_back(std::move(value));
    return around[key_] = std::move(value);
  }
  bool add(Tree value) {
    put(std::move(value));
    return true;
  }

  bool open(Tree empty) {
    if (open_.size() >= kDeepestDocument) {
      return refuse({ErrorCode::kSyntax,
                     fmt::format("nests deeper than {} levels", kDeepestDocument), "", "",
                     "no file of this kind has more than ten"});
    }
    const bool is_object = empty.is_object();
    const std::string key = key_;
    open_.push_back({&put(std::move(empty)), key});
    if (is_object) keys_.emplace_back();
    return true;
  }
  bool close() {
    if (open_.back().tree->is_object()) keys_.pop_back();
    open_.pop_back();
    return true;
  }

  // The object that has just been read leaves what is around it.
  bool drop() {
    const std::string key = std::move(open_.back().key);
    close();
    if (open_.empty()) {
      root_ = {};
    } else if (open_.back().tree->is_array()) {
      open_.back().tree->pop_back();
    } else {
      open_.back().tree->erase(key);
    }
    return true;
  }

  std::string_view text_;
  const JsonRules& rules_;
  Tree root_;
  std::vector<Open> open_;
  std::vector<std::set<std::string>> keys_;  // of the objects among them
  std::string key_;                          // read last
  std::optional<Error> error_;
};

template <class Tree>
Result<Tree> parse(std::string_view text, const std::string& file, const JsonRules& rules) {
  if (!rules.keep_object) {
    if (std::optional<Tree> plain = read_plain_json<Tree>(text)) return std::move(*plain);
  }
  TreeBuilder<Tree> builder(text, rules);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder,
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
