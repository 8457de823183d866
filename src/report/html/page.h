// SPDX-License-Identifier: Apache-2.0
// One self-contained page: no font, script, picture or request from elsewhere, which its content
// policy also forbids. Sections are made by the other files of this folder.
#pragma once

#include <string>
#include <vector>

#include "core/text/written.h"
#include "report/html/markup.h"

namespace stepcast::html {

struct Section {
  std::string id;     // unique in the page, for links
  std::string title;  // also in the list of sections
  Html body;
};

// The tone of a verdict, said in words too, not by colour alone. Plain is one that judges nothing.
enum class Mood { kPlain, kGood, kWarning, kBad };

struct KeyFigure {
  std::string title;
  std::string value;
  std::string note;  // may be empty
};

struct Page {
  std::string title;
  std::string subtitle;
  Mood mood = Mood::kGood;
  std::string verdict;  // a sentence
  std::vector<KeyFigure> figures;
  std::vector<Section> sections;
  Written data;  // JSON text, embedded whole; may be empty
};

Written page_text(const Page& page);
// Verdict, figures and sections alone, to stand in a page that has the style and the script.
Written part_text(const Page& page);

Html paragraph(std::string_view text);
Html note(std::string_view text);  // small print below a picture
// Content that stays closed until the reader opens it.
Html folded(std::string_view summary, const Html& content);

}  // namespace stepcast::html
