// SPDX-License-Identifier: Apache-2.0
#include "core/json_tree.h"

#include <algorithm>
#include <ostream>

#include "core/parse_json.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

template <class Members>
auto place_in(Members& members, std::string_view key, bool sorted) {
  const auto of_key = [](const auto& member) { return std::string_view(member.first); };
  return sorted ? std::ranges::lower_bound(members, key, {}, of_key)
                : std::ranges::find(members, key, of_key);
}

}  // namespace

template <KeyOrder kOrder>
JsonTree<kOrder>::JsonTree(std::initializer_list<Element> list) {
  const bool pairs = std::ranges::all_of(list, [](const Element& element) {
    const JsonTree& value = element.value();
    return value.is_array() && value.size() == 2 && value.front().is_string();
  });
  if (!pairs) {
    *this = array(list);
    return;
  }
  value_ = Members();
  for (const Element& element : list) {
    JsonTree pair = element.taken();
    (*this)[pair.front().get_text()] = std::move(pair.back());
  }
}

template <KeyOrder kOrder>
template <KeyOrder kOther>
requires(kOther != kOrder) JsonTree<kOrder>::JsonTree(const JsonTree<kOther>& other) {
  if (other.is_array()) {
    Array& out = value_.template emplace<Array>();
    out.reserve(other.size());
    for (const auto& value : other) out.emplace_back(value);
  } else if (other.is_object()) {
    value_ = Members();
    for (const auto& [key, value] : other.items()) (*this)[key] = value;
  } else if (other.is_boolean()) {
    value_ = other.template get<bool>();
  } else if (other.is_string()) {
    value_ = other.get_text();
  } else if (other.is_number_float()) {
    value_ = other.template get<double>();
  } else if (other.is_number_unsigned()) {
    value_ = other.template get<std::uint64_t>();
  } else if (other.is_number()) {
    value_ = other.template get<std::int64_t>();
  }
}

template <KeyOrder kOrder>
JsonTree<kOrder> JsonTree<kOrder>::array(std::initializer_list<Element> list) {
  JsonTree out = array();
  for (const Element& element : list) out.push_back(element.taken());
  return out;
}

template <KeyOrder kOrder>
JsonTree<kOrder> JsonTree<kOrder>::parse(std::string_view text) {
  if constexpr (kOrder == KeyOrder::kSorted) {
    auto out = parse_json(text, "");
    STEPCAST_ASSERT(out.has_value(), "text that the program wrote");
    return std::move(*out);
  } else {
    auto out = parse_ordered_json(text, "");
    STEPCAST_ASSERT(out.has_value(), "text that the program wrote");
    return std::move(*out);
  }
}

template <KeyOrder kOrder>
std::size_t JsonTree<kOrder>::size() const {
  if (const auto* list = std::get_if<Array>(&value_)) return list->size();
  if (const auto* members = std::get_if<Members>(&value_)) return members->size();
  return is_null() ? 0 : 1;
}

template <KeyOrder kOrder>
bool JsonTree<kOrder>::get_boolean() const {
  STEPCAST_ASSERT(is_boolean(), "true or false");
  return std::get<bool>(value_);
}

template <KeyOrder kOrder>
const std::string& JsonTree<kOrder>::get_text() const {
  STEPCAST_ASSERT(is_string(), "a text");
  return std::get<std::string>(value_);
}

template <KeyOrder kOrder>
std::size_t JsonTree<kOrder>::place_of(std::string_view key) const {
  const auto* members = std::get_if<Members>(&value_);
  if (!members) return elements();
  const auto found = place_in(*members, key, kOrder == KeyOrder::kSorted);
  const bool there = found != members->end() && found->first == key;
  return there ? static_cast<std::size_t>(found - members->begin()) : members->size();
}

template <KeyOrder kOrder>
const JsonTree<kOrder>* JsonTree<kOrder>::find_member(std::string_view key) const {
  const std::size_t place = is_object() ? place_of(key) : elements();
  return place < elements() ? &std::get<Members>(value_)[place].second : nullptr;
}

template <KeyOrder kOrder>
JsonTree<kOrder>& JsonTree<kOrder>::operator[](std::string_view key) {
  if (is_null()) value_ = Members();
  STEPCAST_ASSERT(is_object(), "an object");
  Members& members = std::get<Members>(value_);
  auto found = place_in(members, key, kOrder == KeyOrder::kSorted);
  if (found == members.end() || found->first != key) {
    found = members.emplace(found, std::string(key), JsonTree());
  }
  return found->second;
}

template <KeyOrder kOrder>
const JsonTree<kOrder>& JsonTree<kOrder>::operator[](std::string_view key) const {
  const JsonTree* found = find_member(key);
  STEPCAST_ASSERT(found != nullptr, "a key of the object");
  return *found;
}

template <KeyOrder kOrder>
const JsonTree<kOrder>* JsonTree<kOrder>::find_path(std::string_view path) const {
  const std::size_t dot = path.find('.');
  const JsonTree* found = find_member(path.substr(0, dot));
  return dot == path.npos || found == nullptr ? found : found->find_path(path.substr(dot + 1));
}

template <KeyOrder kOrder>
void JsonTree<kOrder>::erase(std::string_view key) {
  const std::size_t place = place_of(key);
  if (!is_object() || place == elements()) return;
  Members& members = std::get<Members>(value_);
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(place));
}

template <KeyOrder kOrder>
void JsonTree<kOrder>::update(const JsonTree& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

template <KeyOrder kOrder>
const typename JsonTree<kOrder>::Members& JsonTree<kOrder>::items() const {
  static const Members none;
  const auto* members = std::get_if<Members>(&value_);
  return members ? *members : none;
}

template <KeyOrder kOrder>
typename JsonTree<kOrder>::Members& JsonTree<kOrder>::items() {
  STEPCAST_ASSERT(is_object(), "an object");
  return std::get<Members>(value_);
}

template <KeyOrder kOrder>
typename JsonTree<kOrder>::Array& JsonTree<kOrder>::array_here() {
  if (is_null()) value_ = Array();
  STEPCAST_ASSERT(is_array(), "an array");
  return std::get<Array>(value_);
}

template <KeyOrder kOrder>
JsonTree<kOrder>& JsonTree<kOrder>::at(std::size_t place) {
  return is_object() ? items()[place].second : array_here()[place];
}

template <KeyOrder kOrder>
bool JsonTree<kOrder>::equals(const JsonTree& other) const {
  if (is_number() && other.is_number() && value_.index() != other.value_.index()) {
    return get<double>() == other.get<double>();
  }
  return value_ == other.value_;
}

template <KeyOrder kOrder>
std::ostream& JsonTree<kOrder>::print(std::ostream& out) const {
  return out << json_text(*this);
}

template class JsonTree<KeyOrder::kAsAdded>;
template class JsonTree<KeyOrder::kSorted>;
template Json::JsonTree(const SortedJson& other);
template SortedJson::JsonTree(const Json& other);

}  // namespace stepcast
