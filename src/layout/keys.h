// SPDX-License-Identifier: Apache-2.0
// Every key of `training` and `layout` is declared once, as a row here: how it is read and written,
// what stands in for it where a file leaves it out, its help, its short flag, and what a search may
// try. Reading, the resolved scenario, the command line, `plan` and the table in
// docs/formats/scenario.md all walk these rows. training_keys.cpp and layout_keys.cpp hold them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.h"
#include "layout/settings.h"

namespace stepcast {

class ObjectReader;
struct Scenario;

// Holds what a file says of `training` and `layout`: its values, and the structs' own elsewhere.
struct Stated : Settings {
  static constexpr std::size_t kMostKeys = 128;
  std::bitset<kMostKeys> keys;  // that the file states, by their place among keys()

  bool has(std::string_view path) const;  // "layout.tp"
  void mark(std::string_view path);       // as stated
};

// How one type of value is read and written.
struct KeyType {
  // Takes the value under `key` into the settings. False where there is none, or a wrong one.
  bool (*read)(ObjectReader& object, const char* key, Settings& out);
  void (*write)(const Settings& settings, SortedJson& out);
  void (*copy)(const Settings& from, Settings& to);
  std::string (*accepts)();  // "1 or more", "true or false", in words
};

// Says what a search may try for a key, as numbers.
struct KeySearch {
  using Values = std::vector<std::int64_t>;
  // A value other than the default adds this to a layout that people have to launch and understand.
  enum class Adds { kAxis, kFlag, kNothing };

  int level;  // of the tree: what others depend on comes first
  // All values behind a prefix: a scenario with the levels before this one set, the others at their
  // defaults. Legality is not their business. They depend on degrees, schedule, virtual stages,
  // zero and framework alone (plan/space.cpp counts by these).
  Values (*values)(const Scenario& prefix);
  // Values that a forecast tells apart; among equal ones the first.
  Values (*distinct)(const Scenario& prefix);
  void (*put)(Settings& settings, std::int64_t value);
  std::int64_t (*of)(const Layout& layout);  // what a resolved layout has
  std::string (*text)(std::int64_t value);   // as --fix reads it
  Adds adds = Adds::kFlag;
};

struct KeyFlag {
  const char* name = nullptr;  // "--tp"; null: the key has none
  const char* value = "";      // "N", in its help
  bool text = false;           // its value is text, even where it looks like JSON
};

// A default in words: written out, or made from the rows of the table that decides it.
class FallbackWords {
 public:
  constexpr FallbackWords(const char* text) : text_(text) {}
  constexpr FallbackWords(std::string (*made)()) : made_(made) {}
  std::string text() const { return made_ == nullptr ? text_ : made_(); }

 private:
  const char* text_ = "";
  std::string (*made_)() = nullptr;
};

struct Key {
  const char* path;  // "layout.tp", "layout.overlap.pp"
  const KeyType* type;
  FallbackWords fallback;  // "" where there is none
  const char* help;
  // Fills in a default that depends on other keys, in the order of the rows; null if it depends on
  // nothing, for then it is the initial value of the struct's field.
  void (*settle)(Scenario& scenario, bool stated) = nullptr;
  bool of_framework = false;  // the framework's rule is the default, once all else is settled
  bool (*shown)(const Scenario& scenario) = nullptr;  // in the resolved scenario; null: always
  KeyFlag flag = {};
  const KeySearch* search = nullptr;  // null: `plan` leaves it as it is
  // Paths of searched keys that the default is made of, where `plan` does not search the key
  // itself: the value is open until they are set.
  std::array<std::string_view, 3> made_of = {};
  // Another value is another run: a launch file that has no words for it is refused, where others
  // are remarked upon.
  bool decides_the_run = false;
};

std::span<const Key> training_keys();
std::span<const Key> layout_keys();
const std::vector<const Key*>& keys();  // both, training first

// The object's keys into `out`. Errors go to the value's document.
void read_keys(const JsonValue& object, std::span<const Key> keys, Stated& out);

// The object with every key that is shown.
SortedJson write_keys(const Scenario& scenario, std::span<const Key> keys);

// The settings with every default filled in. Values that contradict each other stay as they are:
// check_legality() names them.
void settle_keys(const Stated& stated, Scenario& scenario);

}  // namespace stepcast
