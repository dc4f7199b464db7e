// Text that came from outside (records, paths, labels), made safe where it is shown. Whatever
// prints such text takes it through here: a name must not move a cursor, begin a line or close a
// tag.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "record/parts.hpp"

namespace scalemark {

/// One line of valid UTF-8 for a terminal: tabs, line and paragraph ends become spaces; other C0
/// and C1 controls (ESC, NUL), bidirectional controls, noncharacters (U+FFFE, U+FFFF) and every
/// ill-formed sequence become U+FFFD. All else is kept.
std::string shown(std::string_view text);

/// Line by line shown(): for messages of our own with text from outside in them. No line begins
/// with "::", which CI servers take for a command.
std::string shown_lines(std::string_view text);

/// A copy in which every string and every key is shown(). Keys that become alike are told apart by
/// further U+FFFD.
Json shown_record(const Json& record);

/// shown(), with what Markdown (GitHub's) would read as markup escaped: \ ` * _ ~ | [ ] by a
/// backslash, & < > by their entities. For table cells and running text, not for code spans.
std::string markdown_text(std::string_view text);

/// For element content and attributes in double quotes of XML 1.0: & < > " by their entities, tabs
/// and line ends by references; what production [2] Char forbids is dropped, and what else shown()
/// would replace is U+FFFD.
std::string xml_text(std::string_view text);

/// ", torch kernels" for the title of what this record measured; empty where it does not tell.
std::string kernels_words(const Json& record);
/// The same from a configuration.
std::string kernels_words(const record::Settings& config);

/// Of each finding its sentence and how sure it is, then, indented, why and what to
/// try; each line at most 100 columns wide and ended. Empty where there are none, and of a record
/// that is older than findings. `told`: rules whose finding the caller says in words of its own,
/// between spaces.
std::string finding_lines(const std::vector<record::Finding>& findings,
                          const std::string& told = "");
std::string finding_lines(const Json& record, const std::string& told = "");

/// Of each finding one line: what, how sure, and why; as they stand in the record, not yet safe to
/// show. For lists below a table.
std::vector<std::string> finding_sentences(const std::vector<record::Finding>& findings,
                                           const std::string& told = "");

}  // namespace scalemark
