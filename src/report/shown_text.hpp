// Makes text from outside (records, paths, labels) safe where it is shown. All such text must pass
// through these functions: a name must not move a cursor, begin a line or close a tag.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "record/parts.hpp"

namespace scalemark {

/// Returns the text as one line of valid UTF-8 for a terminal. Tabs, line and paragraph ends become
/// spaces; other C0 and C1 controls (ESC, NUL), bidirectional controls, noncharacters (U+FFFE,
/// U+FFFF) and every ill-formed sequence become U+FFFD. All else is kept.
std::string shown(std::string_view text);

/// Applies shown() line by line, for messages of our own that contain text from outside. No line
/// begins with "::", which CI servers take for a command.
std::string shown_lines(std::string_view text);

/// Returns a copy in which shown() was applied to every string and every key. Keys that become
/// alike are told apart by further U+FFFD.
Json shown_record(const Json& record);

/// Applies shown(), and escapes what Markdown (GitHub's) would read as markup: \ ` * _ ~ | [ ] by a
/// backslash, & < > by their entities. It is for table cells and running text, not for code spans.
std::string markdown_text(std::string_view text);

/// Makes text safe for element content and for attributes in double quotes of XML 1.0: & < > "
/// become entities, and tabs and line ends become references. What production [2] Char forbids is
/// dropped, and what else shown() would replace becomes U+FFFD.
std::string xml_text(std::string_view text);

/// Returns text like ", torch kernels" for the title of what this record measured, or an empty text
/// where the record does not tell.
std::string kernels_words(const Json& record);
/// Returns the words that kernels_words() makes of a record, from a configuration.
std::string kernels_words(const record::Settings& config);

/// Returns, for each finding, its sentence and how sure it is, then, indented, why and what to try.
/// Each line is at most 100 columns wide and ends with a newline. The text is empty where there are
/// no findings, and for a record from before there were findings. `told` names rules, between
/// spaces, whose finding the caller words itself.
std::string finding_lines(const std::vector<record::Finding>& findings,
                          const std::string& told = "");
std::string finding_lines(const Json& record, const std::string& told = "");

/// Returns one line per finding for lists below a table: what, how sure, and why. The lines have
/// the text of the record, which is not safe to show yet.
std::vector<std::string> finding_sentences(const std::vector<record::Finding>& findings,
                                           const std::string& told = "");

}  // namespace scalemark
