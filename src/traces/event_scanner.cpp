// SPDX-License-Identifier: Apache-2.0
#include "traces/event_scanner.h"

#include <fmt/format.h>

#include "core/limits.h"
#include "core/parse_json.h"

namespace stepcast {
namespace {

// A kernel of many templates has a name of some kB, an operator with stacks some tens.
constexpr std::size_t kLongestEvent = std::size_t{16} << 20;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The text behind an opening quote at `begin`, up to the closing one; moves `begin` behind it.
std::string_view quoted(std::string_view text, std::size_t& begin) {
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  end = std::min(end, text.size());
  const std::string_view out = text.substr(begin + 1, end - begin - 1);
  begin = end + 1;
  return out;
}

// Fills in the three keys, as far as they stand in the object itself. Writers put them first.
void read_keys(RawEvent& event) {
  const std::string_view text = event.text;
  std::string_view key;
  int depth = 0, found = 0;
  for (std::size_t i = 0; i < text.size() && found < 3;) {
    const char c = text[i];
    if (c != '"') {
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      ++i;
      continue;
    }
    const std::string_view word = quoted(text, i);
    if (depth != 1) continue;
    std::size_t after = i;
    while (after < text.size() && is_blank(text[after])) ++after;
    if (after < text.size() && text[after] == ':') {
      key = word;
      i = after + 1;
      continue;
    }
    std::string_view* into = key == "ph"     ? &event.phase
                             : key == "cat"  ? &event.category
                             : key == "name" ? &event.name
                                             : nullptr;
    if (into != nullptr) {
      *into = word;
      ++found;
    }
    key = {};
  }
}

}  // namespace

EventScanner::EventScanner(std::string file, Take take)
    : file_(std::move(file)), take_(std::move(take)) {}

bool EventScanner::refuse(Error error) {
  error.file = file_;
  errors_.push_back(std::move(error));
  return false;
}

bool EventScanner::take_start(char c) {
  if (is_blank(c)) return true;
  if (c == '{') {
    head_ = "{";
    depth_ = 1;
    part_ = Part::kHead;
    return true;
  }
  if (c == '[') {
    is_list_ = true;
    part_ = Part::kEvents;
    return true;
  }
  return refuse({ErrorCode::kFormat, "is no trace: it does not begin as JSON", "", "",
                 "a trace of PyTorch's profiler, as export_chrome_trace writes it"});
}

// Goes on inside a text. True: the character is one of it as it stands, and no escape nor its end.
inline bool EventScanner::follow_text(char c) {
  if (is_escaped_) {
    is_escaped_ = false;
    return false;
  }
  is_escaped_ = c == '\\';
  in_text_ = c != '"';
  return in_text_ && !is_escaped_;
}

// Copies what is no event, and looks for the list of events.
bool EventScanner::take_head(char c) {
  if (head_.size() >= static_cast<std::size_t>(kMostFileBytes)) {
    return refuse({ErrorCode::kFormat, "is no trace: 64 MiB hold no list of events", "",
                   "traceEvents", "a trace of PyTorch's profiler"});
  }
  head_ += c;
  if (in_text_) {
    if (follow_text(c) && depth_ == 1) word_ += c;
    return true;
  }
  switch (c) {
    case '"':
      in_text_ = true;
      word_.clear();
      break;
    case ':':
      if (depth_ == 1) key_ = word_;
      break;
    case ',':
      if (depth_ == 1) key_.clear();
      break;
    case '[':
      if (depth_ == 1 && key_ == "traceEvents") {
        head_ += ']';
        wants_event_ = true;
        wants_comma_ = false;
        part_ = Part::kEvents;
        return true;
      }
      ++depth_;
      break;
    case '{':
      ++depth_;
      break;
    case ']':
    case '}':
      if (--depth_ == 0) part_ = Part::kEnd;
      break;
    default:
      break;
  }
  return true;
}

bool EventScanner::take_between(char c) {
  if (is_blank(c)) return true;
  if (c == ',' && wants_comma_) {
    wants_comma_ = false;
    wants_event_ = true;
    return true;
  }
  if (c == '{' && wants_event_) {
    part_ = Part::kEvent;
    depth_ = 1;
    return true;
  }
  if (c == ']' && (wants_comma_ || events_ == 0)) {
    part_ = is_list_ ? Part::kEnd : Part::kHead;
    depth_ = 1;
    return true;
  }
  return refuse({ErrorCode::kSyntax, "has something between its events that is no JSON", "",
                 fmt::format("traceEvents[{}]", events_), "a whole trace, as it was written"});
}

// Returns how far the event reaches in the piece.
std::size_t EventScanner::take_event(std::string_view piece, std::size_t begin) {
  std::size_t i = begin;
  for (; i < piece.size() && depth_ > 0; ++i) {
    const char c = piece[i];
    if (in_text_) {
      follow_text(c);
    } else if (c == '"') {
      in_text_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
    }
  }
  return i;
}

bool EventScanner::hand_over(std::string_view text) {
  RawEvent event;
  event.text = text;
  event.place = events_++;
  read_keys(event);
  errors_ = take_(event);
  part_ = Part::kEvents;
  wants_event_ = false;
  wants_comma_ = true;
  return errors_.empty();
}

bool EventScanner::feed(std::string_view piece) {
  if (!errors_.empty()) return false;
  for (std::size_t i = 0; i < piece.size();) {
    if (part_ == Part::kEvent) {
      const std::size_t begin = i;
      i = take_event(piece, begin);
      const std::string_view text = piece.substr(begin, i - begin);
      if (begun_.size() + text.size() > kLongestEvent) {
        return refuse({ErrorCode::kBadValue, "is one event of more than 16 MiB", "",
                       fmt::format("traceEvents[{}]", events_), "a trace as it was written"});
      }
      begun_ += text;
      if (depth_ > 0) continue;
      const bool goes_on = hand_over(begun_);
      begun_.clear();
      if (!goes_on) return false;
      continue;
    }
    const char c = piece[i++];
    bool goes_on = true;
    if (part_ == Part::kStart) {
      goes_on = take_start(c);
    } else if (part_ == Part::kHead) {
      goes_on = take_head(c);
    } else if (part_ == Part::kEvents) {
      goes_on = take_between(c);
      if (part_ == Part::kEvent) begun_ = "{";
    } else if (!is_blank(c)) {
      goes_on =
          refuse({ErrorCode::kSyntax, "goes on behind its end", "", "", "one trace per file"});
    }
    if (!goes_on) return false;
  }
  return true;
}

Result<SortedJson> EventScanner::finish() {
  if (!errors_.empty()) return failure(errors_);
  if (part_ == Part::kStart) {
    return failure({ErrorCode::kFormat, "is empty", file_, "", "a trace of PyTorch's profiler"});
  }
  if (part_ != Part::kEnd) {
    return failure({ErrorCode::kSyntax,
                    fmt::format("was cut: it ends {} event {}",
                                part_ == Part::kEvent ? "inside" : "behind", events_),
                    file_, "traceEvents", "the whole trace: copy it anew"});
  }
  if (is_list_) return SortedJson::object();
  return parse_json(head_, file_);
}

}  // namespace stepcast
