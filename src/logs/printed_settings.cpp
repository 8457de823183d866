// SPDX-License-Identifier: Apache-2.0
#include "logs/printed_settings.h"

#include <algorithm>
#include <map>

#include "logs/log_number.h"

namespace stepcast {
namespace {

// These differ between a run and the one that goes on from its checkpoint.
constexpr std::string_view kOfAStart[] = {
    "load",        "save",  "rank",       "iteration",  "consumed", "ckpt",   "train_",   "exit_",
    "tensorboard", "wandb", "log",        "seed",       "master",   "start",  "finetune", "no_load",
    "dump",        "job",   "checkpoint", "profile",    "lr",       "min_lr", "eval",     "data_",
    "dataloader",  "date",  "time",       "local_rank", "host",     "port"};

// The first word of a line, without the marks around it.
std::string_view name_of(std::string_view line) {
  const std::size_t begin = std::min(
      line.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"), line.size());
  std::size_t end = begin;
  while (end < line.size() && is_word(line[end])) ++end;
  return line.substr(begin, end - begin);
}

std::map<std::string_view, std::string_view> lines_by_name(std::string_view text) {
  std::map<std::string_view, std::string_view> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (const auto name = name_of(line); !name.empty()) out.emplace(name, line);
  }
  return out;
}

}  // namespace

std::int64_t depth_of_braces(std::string_view line) {
  std::int64_t depth = 0;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      --depth;
    }
  }
  return depth;
}

std::string first_difference(std::string_view one, std::string_view other) {
  const auto known = lines_by_name(one);
  for (const auto& [name, line] : lines_by_name(other)) {
    const bool chosen_anew = std::ranges::any_of(
        kOfAStart, [n = name](std::string_view word) { return n.starts_with(word); });
    if (chosen_anew) continue;
    const auto found = known.find(name);
    if (found != known.end() && found->second != line) return std::string(name);
  }
  return "";
}

std::string json_of_python(std::string_view text) {
  std::string out;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\' && at + 1 < text.size()) {
        // JSON knows no \'.
        if (text[at + 1] != '\'') out += c;
        out += text[++at];
      } else if (c == quote) {
        quote = 0;
        out += '"';
      } else {
        if (c == '"') out += '\\';
        out += c;
      }
      continue;
    }
    if (c == '"' || c == '\'') {
      quote = c;
      out += '"';
      continue;
    }
    const bool begins_word = is_letter(c) && (at == 0 || !is_word(text[at - 1]));
    std::size_t end = at;
    while (begins_word && end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (word.empty()) {
      out += c;
      continue;
    }
    out += word == "True" ? "true" : word == "False" ? "false" : word == "None" ? "null" : word;
    at = end - 1;
  }
  return out;
}

}  // namespace stepcast
