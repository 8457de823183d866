// SPDX-License-Identifier: Apache-2.0

#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/data_folders.h"
#include "logs/log_figures.h"
#include "logs/printed_settings.h"
#include "logs/training_log.h"
#include "recipes/import.h"

namespace stepcast::fuzz {

// The way of `stepcast import run.log` as far as the log goes, and the settings that it prints.
void read_log(std::string_view text) {
  const auto log = training_log_of(text, "input");
  say_errors_of(log);
  if (!log) return;
  say_errors_of(figures_of(*log));
  say_errors_of(figures_of(*log, 0));
  if (!log->printed) return;
  ImportInput input;
  input.text =
      log->printed->format == "megatron" ? log->printed->text : json_of_python(log->printed->text);
  input.file = "input";
  input.models_folder = data_folders().models;
  say(import_text(log->printed->format, input).errors);
}

}  // namespace stepcast::fuzz
