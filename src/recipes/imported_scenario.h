// SPDX-License-Identifier: Apache-2.0
// A reader of a foreign file found this: scenario keys with their origin, the settings that do not
// change a forecast, and those that may change it but have no key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

// One scenario key. The value is JSON, as `--set` takes it; null takes the key out.
struct Setting {
  std::string path;    // "layout.tp"
  std::string value;   // "8", "\"full\""
  std::string origin;  // "--tensor-model-parallel-size"; "" when the file's comment says it
};

struct ImportInput {
  std::string text;
  std::string file;                              // for errors
  std::optional<std::int64_t> gpus;              // of the cluster, where it is known beforehand
  std::map<std::string, std::string> variables;  // of a shell script, set before it starts
  std::string models_folder;                     // the shipped models
  std::optional<std::int64_t> layers;            // of the model, where the file does not hold it
  // Accelerate's file beside that of a script around Hugging Face's Trainer.
  struct Beside {
    std::string text, file;
  };
  std::optional<Beside> accelerate = {};
};

struct ImportedScenario {
  std::string file;
  std::vector<Setting> settings;
  std::vector<std::string> without_effect;  // logging, data, seeds, learning rates
  std::vector<std::string> warnings;        // may change cost, and no key says it
  std::optional<std::int64_t> gpus;         // that the file starts, else the cluster's
  Errors errors;

  void set_integer(std::string path, std::int64_t value, std::string origin);
  void set_flag(std::string path, bool value, std::string origin);
  void set_number(std::string path, double value, std::string origin);
  void set_word(std::string path, std::string_view value, std::string origin);
  void set_json(std::string path, std::string value, std::string origin);
  // The last value of a key, when it is a whole number.
  std::optional<std::int64_t> integer(std::string_view path) const;
  // A parallel degree: 1 when absent. Clamped to what a layout may have, 1 to 2^20, so that the
  // product of three is a number; the layout's own check names what is beyond.
  std::int64_t degree(std::string_view path) const;
  const Setting* find(std::string_view path) const;
  void fail(ErrorCode code, std::string key, std::string message, std::string hint = "");
};

// A file that stepcast wrote says in comments what its format has no word for, one key per line:
// "# stepcast: layout.order=\"tp-cp-ep-pp-dp\"". These lines, and the way back.
std::string remark_lines(const std::vector<Setting>& remarks);
std::vector<Setting> settings_in_remarks(std::string_view text);

}  // namespace stepcast
