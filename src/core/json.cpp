// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/carried_files.h"
#include "core/json_tree.h"
#include "core/limits.h"
#include "core/packed_json.h"
#include "core/parse_json.h"
#include "core/text/characters.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "core/unit_text.h"

namespace stepcast {

namespace {

const SortedJson& empty_object() {
  static const SortedJson object = SortedJson::object();
  return object;
}

// `parse`, which then also refuses what is out of range.
template <class T>
auto of_range(const QuantityLimits& limits, Result<T> (*parse)(std::string_view)) {
  return [&limits, parse](std::string_view text) -> Result<T> {
    Result<T> parsed = parse(text);
    if (!parsed) return parsed;
    const double value = parsed->value();
    if (value <= limits.most && (value <= 0 || value >= limits.least)) return parsed;
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is out of range", text), "", "",
                    fmt::format("{} to {} {}", limits.least, limits.most, limits.unit)});
  };
}

}  // namespace

bool JsonValue::is_null() const { return node_->is_null(); }
bool JsonValue::is_object() const { return node_->is_object(); }
bool JsonValue::is_array() const { return node_->is_array(); }
bool JsonValue::is_text() const { return node_->is_string(); }
bool JsonValue::is_number() const { return node_->is_number(); }
bool JsonValue::is_boolean() const { return node_->is_boolean(); }
const std::string& JsonValue::file() const { return document_->file(); }
std::string JsonValue::dump() const { return shortened(json_text(*node_), kLongestQuote); }

void JsonValue::fail(ErrorCode code, std::string message, std::string hint) const {
  document_->add({code, std::move(message), document_->file(), path(), std::move(hint)});
}

std::optional<std::string> JsonValue::text() const {
  if (node_->is_string()) return node_->get<std::string>();
  fail(ErrorCode::kWrongType, fmt::format("must be text, not {}", dump()));
  return std::nullopt;
}

std::optional<double> JsonValue::number() const {
  if (node_->is_number()) {
    const double v = node_->get<double>();
    if (std::isfinite(v)) return v;
  }
  fail(ErrorCode::kWrongType, fmt::format("must be a number, not {}", dump()));
  return std::nullopt;
}

std::optional<std::int64_t> JsonValue::integer() const {
  if (node_->is_number_unsigned() &&
      node_->get<std::uint64_t>() <=
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return node_->get<std::int64_t>();
  }
  if (node_->is_number_integer() && !node_->is_number_unsigned()) {
    return node_->get<std::int64_t>();
  }
  if (node_->is_number_float()) {
    const double v = node_->get<double>();
    if (std::floor(v) == v && std::abs(v) < 9e15) return static_cast<std::int64_t>(v);
  }
  const bool large = node_->is_number() && !(std::abs(node_->get<double>()) < 9e15);
  fail(ErrorCode::kWrongType,
       fmt::format("must be a whole number{}, not {}", large ? " that fits 63 bits" : "", dump()));
  return std::nullopt;
}

std::optional<bool> JsonValue::boolean() const {
  if (node_->is_boolean()) return node_->get<bool>();
  fail(ErrorCode::kWrongType, fmt::format("must be true or false, not {}", dump()));
  return std::nullopt;
}

std::optional<std::int64_t> JsonValue::integer(std::int64_t min, std::int64_t max) const {
  return within(integer(), min, max);
}

std::optional<double> JsonValue::number(double min, double max) const {
  return within(number(), min, max);
}

template <class T>
std::optional<T> JsonValue::within(std::optional<T> found, T min, T max) const {
  if (!found || (*found >= min && *found <= max)) return found;
  fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *found),
       fmt::format("{} to {}", min, max));
  return std::nullopt;
}

template <class T, class Parse>
std::optional<T> JsonValue::quantity(Parse parse) const {
  const auto report = [&](const Error& error) {
    fail(error.code, error.message, error.hint);
    return std::nullopt;
  };
  if (!is_text()) {
    const auto example = parse("");  // its error carries the accepted units
    return report(
        {ErrorCode::kBadUnit, dump() + " has no unit", "", "", example.error().front().hint});
  }
  const auto parsed = parse(node_->get_text());
  if (!parsed) return report(parsed.error().front());
  if (parsed->value() < 0) {
    return report({ErrorCode::kBadValue, node_->get_text() + " is negative", "", "", ""});
  }
  return *parsed;
}

std::optional<Bytes> JsonValue::bytes() const {
  return quantity<Bytes>(of_range(kBytesLimits, parse_bytes));
}
std::optional<BytesPerSecond> JsonValue::rate() const {
  return quantity<BytesPerSecond>(of_range(kRateLimits, parse_rate));
}
std::optional<Seconds> JsonValue::seconds() const {
  return quantity<Seconds>(of_range(kSecondsLimits, parse_seconds));
}
std::optional<FlopsPerSecond> JsonValue::flops_rate() const {
  return quantity<FlopsPerSecond>(of_range(kFlopsLimits, parse_flops_rate));
}

std::optional<std::size_t> JsonValue::choice(const std::vector<std::string>& names) const {
  const auto word = text();
  if (!word) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == *word) return i;
  }
  std::string hint = "one of " + one_of(names);
  if (const std::string near = did_you_mean(*word, names); !near.empty()) hint += "; " + near;
  fail(ErrorCode::kBadValue, fmt::format("'{}' is not accepted", *word), hint);
  return std::nullopt;
}

std::vector<JsonValue> JsonValue::items() const {
  std::vector<JsonValue> out;
  if (!node_->is_array()) {
    fail(ErrorCode::kWrongType, fmt::format("must be a list, not {}", dump()));
    return out;
  }
  out.reserve(node_->size());
  for (const SortedJson& item : *node_) {
    out.push_back(JsonValue(&item, document_->add_step({step_, {}, out.size()}), document_));
  }
  return out;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  std::vector<std::pair<std::string, JsonValue>> out;
  if (!node_->is_object()) {
    fail(ErrorCode::kWrongType, fmt::format("must be an object, not {}", dump()));
  }
  for (const auto& [key, member] : node_->items()) {
    out.emplace_back(key, this->member(key, member));
  }
  return out;
}

JsonValue JsonValue::member(std::string_view key, const SortedJson& value) const {
  return JsonValue(&value, document_->add_step({step_, key, 0}), document_);
}

std::string JsonValue::path() const {
  std::vector<const JsonStep*> steps;
  for (const JsonStep* step = step_; step != nullptr; step = step->before) steps.push_back(step);
  std::string out;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if ((*step)->key.data() == nullptr) {
      out += fmt::format("[{}]", (*step)->index);
    } else {
      if (!out.empty()) out += '.';
      out += (*step)->key;
    }
  }
  return out;
}

std::string JsonValue::path_of(std::string_view key) const {
  const std::string around = path();
  return around.empty() ? std::string(key) : fmt::format("{}.{}", around, key);
}

JsonDocument::JsonDocument(std::unique_ptr<SortedJson> value, std::string file)
    : json_(std::move(value)), file_(std::move(file)) {}
JsonDocument::~JsonDocument() = default;

Result<std::unique_ptr<JsonDocument>> JsonDocument::load(const std::string& file) {
  const CarriedFile* carried = carried_file(file);
  if (carried && carried->is_packed) return from(unpack_json(carried->bytes), file);
  const auto text = read_text_file(file);
  if (!text) return failure(text.error());
  return parse(*text, file);
}

Result<std::unique_ptr<JsonDocument>> JsonDocument::parse(std::string_view text, std::string file) {
  auto value = parse_json(text, file, {.unique_keys = true});
  if (!value) return failure(value.error());
  return from(std::move(*value), std::move(file));
}

std::unique_ptr<JsonDocument> JsonDocument::from(SortedJson value, std::string file) {
  return std::unique_ptr<JsonDocument>(
      new JsonDocument(std::make_unique<SortedJson>(std::move(value)), std::move(file)));
}

JsonValue JsonDocument::root() { return JsonValue(json_.get(), nullptr, this); }

void JsonDocument::add(Error error) {
  if (errors_.size() >= kMostErrorsKept) return;
  if (error.file.empty()) error.file = file_;
  errors_.push_back(std::move(error));
}

void JsonDocument::add(Errors errors) {
  for (Error& error : errors) add(std::move(error));
}

ObjectReader::ObjectReader(JsonValue value) : value_(std::move(value)) {
  if (!value_.is_object()) {
    value_.fail(ErrorCode::kWrongType, fmt::format("must be an object, not {}", value_.dump()));
    value_.node_ = &empty_object();
  }
  is_known_.assign(value_.node_->size(), false);
}

std::string ObjectReader::path_of(std::string_view key) const { return value_.path_of(key); }

SortedJson::Iterator<const SortedJson> ObjectReader::find(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = value_.node_->find(key);
  if (found != value_.node_->end()) is_known_[found.place()] = true;
  return found;
}

std::optional<JsonValue> ObjectReader::value(std::string_view key) {
  const auto found = find(key);
  if (found == value_.node_->end() || found->is_null()) return std::nullopt;
  return value_.member(found.key(), *found);
}

bool ObjectReader::has(std::string_view key) { return value(key).has_value(); }

std::optional<JsonValue> ObjectReader::required(std::string_view key) {
  auto found = value(key);
  if (!found) fail(key, ErrorCode::kMissingKey, "is required and missing");
  return found;
}

std::optional<std::string> ObjectReader::text(std::string_view key) {
  const auto found = value(key);
  return found ? found->text() : std::nullopt;
}

std::optional<bool> ObjectReader::boolean(std::string_view key) {
  const auto found = value(key);
  return found ? found->boolean() : std::nullopt;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view key, std::int64_t min,
                                                  std::int64_t max) {
  const auto found = value(key);
  return found ? found->integer(min, max) : std::nullopt;
}

std::optional<double> ObjectReader::number(std::string_view key, double min, double max) {
  const auto found = value(key);
  return found ? found->number(min, max) : std::nullopt;
}

std::optional<Bytes> ObjectReader::bytes(std::string_view key) {
  const auto found = value(key);
  return found ? found->bytes() : std::nullopt;
}
std::optional<BytesPerSecond> ObjectReader::rate(std::string_view key) {
  const auto found = value(key);
  return found ? found->rate() : std::nullopt;
}
std::optional<Seconds> ObjectReader::seconds(std::string_view key) {
  const auto found = value(key);
  return found ? found->seconds() : std::nullopt;
}
std::optional<FlopsPerSecond> ObjectReader::flops_rate(std::string_view key) {
  const auto found = value(key);
  return found ? found->flops_rate() : std::nullopt;
}

std::optional<std::size_t> ObjectReader::choice(std::string_view key,
                                                const std::vector<std::string>& names) {
  const auto found = value(key);
  return found ? found->choice(names) : std::nullopt;
}

bool ObjectReader::is_format(std::string_view key, std::int64_t format) {
  const auto found = value(key);
  if (found && found->is_number() && *found->node_ == format) return true;
  fail(key, ErrorCode::kFormat,
       found ? fmt::format("format {} is not read", found->dump()) : "the format number is missing",
       fmt::format("\"{}\": {}", key, format));
  return false;
}

std::int64_t ObjectReader::required_integer(std::string_view key, std::int64_t min,
                                            std::int64_t max) {
  return required(key) ? integer(key, min, max).value_or(0) : 0;
}

std::string ObjectReader::required_text(std::string_view key) {
  return required(key) ? text(key).value_or("") : "";
}

void ObjectReader::fail(std::string_view key, ErrorCode code, std::string message,
                        std::string hint) {
  value_.document_->add({code, std::move(message), value_.file(), path_of(key), std::move(hint)});
}

bool ObjectReader::ok() const { return value_.document_->ok(); }

std::vector<std::string> ObjectReader::not_asked() const {
  std::vector<std::string> out;
  for (std::size_t place = 0; place < is_known_.size(); ++place) {
    if (!is_known_[place]) out.push_back(value_.node_->items()[place].first);
  }
  return out;
}

void ObjectReader::finish() {
  if (std::ranges::find(is_known_, false) == is_known_.end()) return;
  std::ranges::sort(asked_);
  asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
  for (const std::string& key : not_asked()) {
    std::string hint = did_you_mean(key, asked_);
    if (hint.empty()) hint = "known keys: " + one_of(asked_);
    fail(key, ErrorCode::kUnknownKey, "is not a known key", hint);
  }
}

}  // namespace stepcast
