// SPDX-License-Identifier: Apache-2.0
// Seeded mutations of texts: bytes, ranges, words of a dictionary, numbers, and parts of other
// seeds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/seeded_random.h"

namespace stepcast::fuzz {

// The words between quotes of a dictionary in libFuzzer's form.
std::vector<std::string> words_of_dictionary(std::string_view text);

class Mutation {
 public:
  Mutation(std::uint64_t seed, const std::vector<std::string>& seeds,
           std::vector<std::string> words);

  std::string next();  // one to eight changes of one of the seeds

 private:
  std::size_t below(std::size_t count);  // 0 where count is 0
  void change(std::string& text);
  void change_number(std::string& text);
  std::string part_of(const std::string& text);

  const std::vector<std::string>& seeds_;
  std::vector<std::string> words_;
  SeededRandom random_;
};

}  // namespace stepcast::fuzz
