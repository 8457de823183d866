// SPDX-License-Identifier: Apache-2.0
#include "logs/training_log.h"

#include "core/limits.h"
#include "core/text_file.h"
#include "logs/log_reader.h"
#include "logs/trainer_state.h"

namespace stepcast {
namespace {

// A document may tell more than its lines.
bool tells_nothing(const Result<TrainingLog>& log) {
  return log && log->steps.steps.empty() && !log->printed;
}

}  // namespace

Result<TrainingLog> read_training_log(const std::string& file) {
  LogReader reader(file);
  bool may_be_document = false, has_begun = false;
  const auto read =
      read_lines(file, kLongestLogLine, {.most_bytes = kMostLogBytes}, [&](const FileLine& line) {
        if (!has_begun && !line.text.empty()) {
          has_begun = true;
          may_be_document = line.text.starts_with('{');
        }
        reader.take(line);
      });
  if (!read) return failure(read.error());
  auto log = reader.finish();
  if (!tells_nothing(log) || !may_be_document) return log;
  const auto text = read_text_file(file);
  if (text) read_trainer_state(*text, *log);
  return log;
}

Result<TrainingLog> training_log_of(std::string_view text, const std::string& file) {
  LogReader reader(file);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find_first_of("\n\r", begin);
    const bool is_ended = end != std::string_view::npos;
    const std::string_view line = text.substr(begin, is_ended ? end - begin : end);
    const bool is_too_long = line.size() > kLongestLogLine;
    reader.take({is_too_long ? std::string_view() : line, is_ended, is_too_long});
    begin = is_ended ? end + 1 : text.size();
  }
  auto log = reader.finish();
  if (tells_nothing(log)) read_trainer_state(std::string(text), *log);
  return log;
}

}  // namespace stepcast
