// Small helpers for words in messages: quoting what a user wrote, joining lists, finding the
// nearest name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace scalemark {

/// In double quotes, control characters and bytes that are not UTF-8 escaped, cut after 60 bytes:
/// safe on a terminal.
std::string quote(std::string_view text);

/// "a, b, c" for the separator ", ".
std::string join(const std::vector<std::string>& words, std::string_view separator);

/// Without spaces at both ends.
std::string trimmed(std::string_view text);

/// `-` becomes `_`.
std::string canonical_name(std::string_view name);

/// Lines of at most `columns`, broken at blanks, all but the first indented; a longer word has a
/// line of its own. Ends with a newline.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent = 0);

/// The candidate with the smallest edit distance (Levenshtein), where it is near enough to be a
/// misspelling: at most two edits, or a third of the longer word; empty otherwise.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// "; did you mean NAME?" with `prefix` before the name, or nothing where no name is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view prefix = "");

}  // namespace scalemark
