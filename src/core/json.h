// SPDX-License-Identifier: Apache-2.0
// Reading JSON with key paths. An ObjectReader asks for keys; a value of the wrong type or out of
// range, and a key in the file that nobody asked for, becomes an Error in the document's list, with
// file and path. Readers go on after an error, so that all are listed.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_tree.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

class JsonDocument;

// The last step to a value: the key of a member, or the place in a list.
struct JsonStep {
  const JsonStep* before = nullptr;  // null: the value is the root
  std::string_view key = {};         // empty data: an element of a list
  std::size_t index = 0;
};

// A value inside a document. Copies are cheap; the document must outlive them.
class JsonValue {
 public:
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_text() const;
  bool is_number() const;
  bool is_boolean() const;

  std::optional<std::string> text() const;  // these report a wrong type
  std::optional<double> number() const;
  std::optional<std::int64_t> integer() const;
  std::optional<bool> boolean() const;
  std::optional<double> number(double min, double max) const;
  std::optional<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  std::optional<Bytes> bytes() const;  // these are texts with a unit
  std::optional<BytesPerSecond> rate() const;
  std::optional<Seconds> seconds() const;
  std::optional<FlopsPerSecond> flops_rate() const;
  // One of `names`; returns its index. The error lists them and the nearest match.
  std::optional<std::size_t> choice(const std::vector<std::string>& names) const;
  std::vector<JsonValue> items() const;                            // of an array
  std::vector<std::pair<std::string, JsonValue>> members() const;  // of an object

  std::string path() const;
  const std::string& file() const;
  const SortedJson& raw() const { return *node_; }
  std::string dump() const;  // compact, for messages

  void fail(ErrorCode code, std::string message, std::string hint = "") const;

 private:
  friend class JsonDocument;
  friend class ObjectReader;
  JsonValue(const SortedJson* node, const JsonStep* step, JsonDocument* document)
      : node_(node), step_(step), document_(document) {}

  JsonValue member(std::string_view key, const SortedJson& value) const;  // a key of the node
  std::string path_of(std::string_view key) const;
  template <class T>
  std::optional<T> within(std::optional<T> found, T min, T max) const;
  template <class T, class Parse>
  std::optional<T> quantity(Parse parse) const;

  const SortedJson* node_;
  const JsonStep* step_;  // the path is put together where somebody asks, as errors do
  JsonDocument* document_;
};

// A parsed file and the errors found in it so far.
class JsonDocument {
 public:
  static Result<std::unique_ptr<JsonDocument>> load(const std::string& file);
  static Result<std::unique_ptr<JsonDocument>> parse(std::string_view text, std::string file);
  static std::unique_ptr<JsonDocument> from(SortedJson value, std::string file);
  ~JsonDocument();

  JsonValue root();
  const std::string& file() const { return file_; }
  const Errors& errors() const { return errors_; }
  bool ok() const { return errors_.empty(); }
  void add(Error error);
  void add(Errors errors);

 private:
  friend class JsonValue;
  JsonDocument(std::unique_ptr<SortedJson> json, std::string file);
  const JsonStep* add_step(JsonStep step) { return &steps_.emplace_back(step); }

  std::unique_ptr<SortedJson> json_;
  std::string file_;
  Errors errors_;
  std::deque<JsonStep> steps_;  // of the values that were read
};

// Reads one object key by key. Call finish() last: it reports the keys nobody asked for.
class ObjectReader {
 public:
  explicit ObjectReader(JsonValue value);  // reports when it is not an object, then is empty

  bool has(std::string_view key);  // present and not null; counts as asked for
  std::optional<JsonValue> value(std::string_view key);
  std::optional<JsonValue> required(std::string_view key);

  std::optional<std::string> text(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min,
                                      std::int64_t max = kMaxCount);
  std::optional<double> number(std::string_view key, double min, double max);
  std::optional<Bytes> bytes(std::string_view key);
  std::optional<BytesPerSecond> rate(std::string_view key);
  std::optional<Seconds> seconds(std::string_view key);
  std::optional<FlopsPerSecond> flops_rate(std::string_view key);
  std::optional<std::size_t> choice(std::string_view key, const std::vector<std::string>& names);

  std::int64_t required_integer(std::string_view key, std::int64_t min,
                                std::int64_t max = kMaxCount);  // 0 after an error
  std::string required_text(std::string_view key);              // "" after an error

  // Whether the required key says this format, the only one that is read.
  bool is_format(std::string_view key, std::int64_t format);
  void ignore(std::string_view key) { find(key); }  // known, and without effect
  void fail(std::string_view key, ErrorCode code, std::string message, std::string hint = "");
  void finish();
  std::vector<std::string> not_asked() const;  // keys that finish() would report
  bool ok() const;                             // nothing has been wrong with the document so far
  std::string path_of(std::string_view key) const;
  JsonValue self() const { return value_; }

  // Above this a count is a mistake rather than a model: it keeps all products inside 63 bits.
  static constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

 private:
  SortedJson::Iterator<const SortedJson> find(std::string_view key);

  JsonValue value_;
  std::vector<std::string> asked_;
  std::vector<bool> is_known_;  // by place in the object: somebody asked for it
};

}  // namespace stepcast
