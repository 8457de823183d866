// SPDX-License-Identifier: Apache-2.0
// One reader of foreign text that the fuzzer feeds. A target is a function of the text alone: it
// opens no file that the text names, and what it needs besides is read once.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/result.h"

namespace stepcast {

struct Cluster;
struct DataFolders;
}  // namespace stepcast

namespace stepcast::fuzz {

struct Target {
  const char* name;  // of its corpus, too
  void (*run)(std::string_view text);
  std::size_t most_bytes;  // of a text: longer ones find nothing that shorter ones do not
  const char* dictionary = "";
};

const Target* target_named(std::string_view name);  // null: there is none
// By the word --target=NAME; --list prints the table and ends the program.
const Target* target_of_words(int count, char** words);

const DataFolders& data_folders();
const Cluster& some_cluster();  // two nodes of dgx-h100

// Prints a reader's errors, because they have to be sayable.
void say(const Errors& errors);
template <class T>
void say_errors_of(const Result<T>& result) {
  if (!result) say(result.error());
}

// Reads the text as JSON and hands the document to `read`, when it is JSON.
template <class Read>
void with_document(std::string_view text, Read read) {
  const auto document = JsonDocument::parse(text, "input.json");
  if (!document) return say(document.error());
  read(**document);
  say((*document)->errors());
}

}  // namespace stepcast::fuzz
