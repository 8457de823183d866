// SPDX-License-Identifier: Apache-2.0
// JSON as a value: built key by key or from braces, taken apart, written by json_text() and
// json_file() (core/text/escape.h). Text of others becomes one through core/parse_json.h alone, and
// a JsonDocument (core/json.h) reads it with errors that name file and key.
//
//   Json out = {{"name", "qkv"}, {"shape", {512, 4096}}};
//   out["time_s"] = 0.25;
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/assert.h"
#include "core/json_fwd.h"

namespace stepcast {

namespace json_detail {
template <class T>
inline constexpr bool kIsTree = false;
template <KeyOrder kOrder>
inline constexpr bool kIsTree<JsonTree<kOrder>> = true;

template <class T>
concept Text = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept List = !Text<T> && !kIsTree<T> && requires(const T& list) {
  list.begin();
  list.end();
  list.size();
};
// Keys of texts, as std::map has.
template <class T>
concept Mapping = List<T> && requires(const T& map) {
  typename T::mapped_type;
  map.begin()->first;
};
}  // namespace json_detail

template <KeyOrder kOrder>
class JsonTree {
 public:
  using Member = std::pair<std::string, JsonTree>;
  using Members = std::vector<Member>;
  using Array = std::vector<JsonTree>;
  class Element;  // of a list in braces

  JsonTree() = default;  // null
  // A copy is made whole before it takes its place: the copy constructor of g++ 12's std::variant
  // destroys what it never made where a nested one runs out of memory.
  JsonTree(const JsonTree& other) {
    std::visit([this](const auto& held) { value_ = std::decay_t<decltype(held)>(held); },
               other.value_);
  }
  JsonTree& operator=(const JsonTree& other) {
    JsonTree copy(other);
    value_ = std::move(copy.value_);
    return *this;
  }
  JsonTree(JsonTree&&) noexcept = default;
  JsonTree& operator=(JsonTree&&) noexcept = default;
  ~JsonTree() = default;
  JsonTree(std::nullptr_t) {}
  template <class T>
  requires std::is_arithmetic_v<T> JsonTree(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      value_ = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      value_ = static_cast<double>(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      value_ = static_cast<std::uint64_t>(value);
    } else {
      value_ = static_cast<std::int64_t>(value);
    }
  }
  template <json_detail::Text T>
  JsonTree(const T& text) : value_(std::string(std::string_view(text))) {}
  JsonTree(std::string&& text) : value_(std::move(text)) {}
  template <json_detail::List T>
  JsonTree(const T& list) {
    if constexpr (json_detail::Mapping<T>) {
      value_ = Members();
      for (const auto& [key, value] : list) (*this)[key] = value;
    } else {
      Array& out = value_.template emplace<Array>();
      out.reserve(list.size());
      for (const auto& value : list) out.emplace_back(value);
    }
  }
  // An object where every element is a pair that begins with a text, else an array.
  JsonTree(std::initializer_list<Element> list);
  template <KeyOrder kOther>
  requires(kOther != kOrder) JsonTree(const JsonTree<kOther>& other);

  static JsonTree array() { return with(Array()); }
  static JsonTree array(std::initializer_list<Element> list);
  static JsonTree object() { return with(Members()); }
  static JsonTree array_of(Array elements) { return with(std::move(elements)); }
  // Their keys differ, and are in order where the order is by the alphabet.
  static JsonTree object_of(Members members) { return with(std::move(members)); }
  // Text that the program itself wrote.
  static JsonTree parse(std::string_view text);

  bool is_null() const { return holds<std::monostate>(); }
  bool is_boolean() const { return holds<bool>(); }
  bool is_string() const { return holds<std::string>(); }
  bool is_array() const { return holds<Array>(); }
  bool is_object() const { return holds<Members>(); }
  bool is_structured() const { return is_array() || is_object(); }
  bool is_number_unsigned() const { return holds<std::uint64_t>(); }
  bool is_number_integer() const { return holds<std::int64_t>() || is_number_unsigned(); }
  bool is_number_float() const { return holds<double>(); }
  bool is_number() const { return is_number_integer() || is_number_float(); }

  std::size_t size() const;  // 0 of null, 1 of a plain value
  bool empty() const { return size() == 0; }

  // The value as a bool, number, text or vector of these; asking for another kind is a fault of the
  // program.
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, bool>) {
      return get_boolean();
    } else if constexpr (std::is_arithmetic_v<T>) {
      STEPCAST_ASSERT(is_number(), "a number");
      if (holds<std::int64_t>()) return static_cast<T>(std::get<std::int64_t>(value_));
      if (holds<std::uint64_t>()) return static_cast<T>(std::get<std::uint64_t>(value_));
      return static_cast<T>(std::get<double>(value_));
    } else if constexpr (std::is_same_v<T, std::string>) {
      return get_text();
    } else {
      T out;
      for (const JsonTree& one : *this) out.push_back(one.template get<typename T::value_type>());
      return out;
    }
  }
  const std::string& get_text() const;

  // An object has these. Null becomes one when a key is written.
  JsonTree& operator[](std::string_view key);
  const JsonTree& operator[](std::string_view key) const;  // the key is there
  bool contains(std::string_view key) const { return find_member(key) != nullptr; }
  // The value of a key; the fallback where it is not there.
  template <class T>
  T value(std::string_view key, T fallback) const {
    const JsonTree* found = find_member(key);
    if (found == nullptr) return fallback;
    if constexpr (json_detail::kIsTree<T>) {
      return *found;
    } else {
      return found->template get<T>();
    }
  }
  // The value at "layout.tp"; null where there is none.
  const JsonTree* find_path(std::string_view path) const;
  void erase(std::string_view key);
  void update(const JsonTree& other);  // its keys over those here
  const Members& items() const;        // none of what is no object
  Members& items();

  // An array has these. Null becomes one when something is added.
  template <class T>
  requires std::is_integral_v<T> JsonTree& operator[](T index) {
    return array_here()[static_cast<std::size_t>(index)];
  }
  template <class T>
  requires std::is_integral_v<T>
  const JsonTree& operator[](T index) const { return const_cast<JsonTree&>(*this)[index]; }
  void push_back(JsonTree value) { array_here().push_back(std::move(value)); }
  JsonTree& emplace_back(JsonTree value = {}) {
    return array_here().emplace_back(std::move(value));
  }
  void pop_back() { array_here().pop_back(); }
  JsonTree& front() { return array_here().front(); }
  const JsonTree& front() const { return const_cast<JsonTree&>(*this).front(); }
  JsonTree& back() { return array_here().back(); }
  const JsonTree& back() const { return const_cast<JsonTree&>(*this).back(); }

  // The values of an array or object.
  template <class Tree>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = JsonTree;
    using difference_type = std::ptrdiff_t;
    using pointer = Tree*;
    using reference = Tree&;
    Iterator() = default;
    Iterator(Tree* tree, std::size_t at) : tree_(tree), at_(at) {}
    Tree& operator*() const { return tree_->at(at_); }
    Tree* operator->() const { return &tree_->at(at_); }
    const std::string& key() const { return tree_->items()[at_].first; }
    std::size_t place() const { return at_; }
    Tree& value() const { return **this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    Tree* tree_ = nullptr;
    std::size_t at_ = 0;
  };
  Iterator<JsonTree> begin() { return {this, 0}; }
  Iterator<JsonTree> end() { return {this, elements()}; }
  Iterator<const JsonTree> begin() const { return {this, 0}; }
  Iterator<const JsonTree> end() const { return {this, elements()}; }
  Iterator<JsonTree> find(std::string_view key) { return {this, place_of(key)}; }
  Iterator<const JsonTree> find(std::string_view key) const { return {this, place_of(key)}; }

  // The element or member at a place, whose key may be any.
  JsonTree& at(std::size_t place);
  const JsonTree& at(std::size_t place) const { return const_cast<JsonTree&>(*this).at(place); }
  // The value that has to be there.
  const JsonTree& at(std::string_view key) const { return (*this)[key]; }

  friend bool operator==(const JsonTree& a, const JsonTree& b) { return a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, const JsonTree& value) {
    return value.print(out);
  }

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  static JsonTree with(T value) {
    JsonTree out;
    out.value_ = std::move(value);
    return out;
  }
  bool get_boolean() const;
  Array& array_here();
  std::size_t elements() const { return is_structured() ? size() : 0; }
  std::size_t place_of(std::string_view key) const;  // elements() where it is not
  const JsonTree* find_member(std::string_view key) const;
  bool equals(const JsonTree& other) const;
  std::ostream& print(std::ostream& out) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Members>
      value_;
};

template <KeyOrder kOrder>
class JsonTree<kOrder>::Element {
 public:
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Element> && std::is_constructible_v<JsonTree, T>)
      Element(T&& value)
      : value_(std::forward<T>(value)) {}
  Element(std::initializer_list<Element> list) : value_(list) {}

  const JsonTree& value() const { return value_; }
  JsonTree taken() const { return std::move(value_); }  // a list in braces is read once

 private:
  mutable JsonTree value_;
};

extern template class JsonTree<KeyOrder::kAsAdded>;
extern template class JsonTree<KeyOrder::kSorted>;

}  // namespace stepcast
