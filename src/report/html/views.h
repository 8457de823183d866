// SPDX-License-Identifier: Apache-2.0
// Pictures that take turns in one place, chosen by radio buttons: by pointer or keyboard, and
// without the script.
#pragma once

#include <string>
#include <vector>

#include "report/html/markup.h"

namespace stepcast::html {

struct View {
  std::string title;  // of its button
  Html body;
};

constexpr std::size_t kMostViews = 4;  // page.css has a rule for each

// The first shows until another is chosen. `id` is unique in its page; a single one has no buttons.
Html views(const std::string& id, const std::string& question, const std::vector<View>& all);

}  // namespace stepcast::html
