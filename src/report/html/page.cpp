// SPDX-License-Identifier: Apache-2.0
#include "report/html/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/escape.h"
#include "report/html/assets.h"

namespace stepcast::html {
namespace {

unsigned digit_of(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

// The form in which a content policy names a hash.
std::string base64(std::string_view hexadecimal) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 6) {
    unsigned bits = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      bits = bits << 4 | (i + k < hexadecimal.size() ? digit_of(hexadecimal[i + k]) : 0);
    }
    const std::size_t given = std::min<std::size_t>(4 * (hexadecimal.size() - i), 24);
    for (std::size_t k = 0; k < 4; ++k) {
      out += 6 * k < given ? kLetters[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::string content_policy() {
  return fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
      "form-action 'none'",
      base64(kStyle.sha256), base64(kScript.sha256));
}

Html head(const Page& page) {
  return element("head", {},
                 element("meta", {{"charset", "utf-8"}}) +
                     element("meta", {{"http-equiv", "Content-Security-Policy"},
                                      {"content", content_policy()}}) +
                     element("meta", {{"name", "viewport"}, {"content", "width=device-width"}}) +
                     element("meta", {{"name", "color-scheme"}, {"content", "light dark"}}) +
                     element("title", {}, page.title) +
                     element("style", {}, Html::written_here(kStyle.content)));
}

const char* class_of(Mood mood) {
  switch (mood) {
    case Mood::kPlain:
      return "verdict plain";
    case Mood::kGood:
      return "verdict good";
    case Mood::kWarning:
      return "verdict warning";
    case Mood::kBad:
      return "verdict bad";
  }
  return "verdict";
}

// Subtitle, verdict and figures.
Html outcome(const Page& page) {
  Html figures;
  for (const KeyFigure& figure : page.figures) {
    Html value = element("dd", {}, figure.value);
    if (!figure.note.empty()) value += element("dd", {{"class", "note"}}, figure.note);
    figures += element("div", {}, element("dt", {}, figure.title) + value);
  }
  Html out = element("p", {{"class", "subtitle"}}, page.subtitle) +
             element("p", {{"class", class_of(page.mood)}}, page.verdict);
  if (!figures.empty()) out += element("dl", {{"class", "figures"}}, figures);
  return out;
}

Html header(const Page& page) {
  const Html theme =
      element("button", {{"type", "button"}, {"id", "theme"}, {"class", "needs-script"}},
              "Theme: automatic");
  return element(
      "header", {},
      element("div", {{"class", "title"}}, element("h1", {}, page.title) + theme) + outcome(page));
}

Html all_sections(const Page& page) {
  Html out;
  for (const Section& section : page.sections) {
    const std::string heading = section.id + "-title";
    out += element("section", {{"id", section.id}, {"aria-labelledby", heading}},
                   element("h2", {{"id", heading}}, section.title) + section.body) +
           text("\n");
  }
  return out;
}

Html list_of_sections(const Page& page) {
  Html links;
  for (const Section& section : page.sections) {
    links += element("li", {}, element("a", {{"href", "#" + section.id}}, section.title));
  }
  return element("nav", {{"aria-label", "Sections"}}, element("ul", {}, links));
}

Html data_block(const Written& json) {
  return element("script", {{"type", "application/json"}, {"id", "data"}},
                 Html::written_here(json_in_script(json)));
}

}  // namespace

Html paragraph(std::string_view text) { return element("p", {}, text); }

Html note(std::string_view text) { return element("p", {{"class", "note"}}, text); }

Html folded(std::string_view summary, const Html& content) {
  return element("details", {}, element("summary", {}, summary) + content);
}

Written page_text(const Page& page) {
  Html body = header(page) + text("\n") + list_of_sections(page) + text("\n") +
              element("main", {}, all_sections(page));
  if (!page.data.empty()) body += data_block(page.data) + text("\n");
  body += element("script", {}, Html::written_here(kScript.content));
  const Html document = element("html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", "en"}},
                                head(page) + text("\n") + element("body", {}, body));
  return Written::escaped("<!DOCTYPE html>\n" + document.markup() + "\n");
}

Written part_text(const Page& page) {
  return Written::escaped((outcome(page) + all_sections(page)).markup());
}

}  // namespace stepcast::html
