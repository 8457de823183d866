// SPDX-License-Identifier: Apache-2.0
// Finds the events of a trace in Chrome's format in a text that comes piece by piece. It only looks
// for where each begins and ends, and at three of its keys, because most events of a large trace
// concern nobody: whoever wants one parses its text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

// Views into the text, valid while the event is handed over; as written between the quotes.
struct RawEvent {
  std::string_view text;
  std::string_view phase;     // "X"
  std::string_view category;  // "kernel"
  std::string_view name;
  std::int64_t place = 0;  // among those of the trace
};

class EventScanner {
 public:
  using Take = std::function<Errors(const RawEvent&)>;  // errors end the scan
  EventScanner(std::string file, Take take);

  bool feed(std::string_view piece);  // false once an error is known
  // All but the events, after the last piece. Errors: a text that is cut, or is no trace.
  Result<SortedJson> finish();

 private:
  enum class Part { kStart, kHead, kEvents, kEvent, kEnd };

  bool refuse(Error error);
  bool take_start(char c);
  bool follow_text(char c);
  bool take_head(char c);
  bool take_between(char c);
  std::size_t take_event(std::string_view piece, std::size_t begin);
  bool hand_over(std::string_view text);

  std::string file_;
  Take take_;
  Errors errors_;
  Part part_ = Part::kStart;
  bool is_list_ = false;  // of events, with nothing around it
  std::string head_;      // all but the events
  std::string word_, key_;
  std::string begun_;  // of an event that the next piece goes on with
  std::int64_t events_ = 0;
  int depth_ = 0;
  bool in_text_ = false, is_escaped_ = false;
  bool wants_event_ = true, wants_comma_ = false;
};

}  // namespace stepcast
