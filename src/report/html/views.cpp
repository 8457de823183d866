// SPDX-License-Identifier: Apache-2.0
#include "report/html/views.h"

#include "core/assert.h"

namespace stepcast::html {

Html views(const std::string& id, const std::string& question, const std::vector<View>& all) {
  STEPCAST_ASSERT(all.size() <= kMostViews, "the style knows no more views");
  if (all.size() == 1) return all.front().body;
  Html buttons = element("legend", {}, question);
  Html bodies;
  for (const View& view : all) {
    std::vector<Attribute> attributes{{"type", "radio"}, {"name", id}};
    if (&view == &all.front()) attributes.push_back({"checked", "checked"});
    buttons += element("label", {}, element("input", attributes) + text(" " + view.title));
    bodies += element("div", {{"class", "view"}}, view.body);
  }
  return element("div", {{"class", "views"}, {"id", id}},
                 element("fieldset", {{"class", "bar"}}, buttons) + bodies);
}

}  // namespace stepcast::html
