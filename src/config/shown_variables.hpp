// Decides what records, journals, tables and plans may show of environment variables
// (docs/security.md).
#pragma once

#include <string>
#include <string_view>

#include "json.hpp"

namespace scalemark {

/// Returns whether the name says that its value is a secret.
bool names_a_secret(std::string_view name);

/// Returns whether the value looks like a credential, whatever its name: a password or token in a
/// URL, "password=...", "Bearer ...", a key of a known shape.
bool looks_like_a_credential(std::string_view value);

/// Returns the text with "***" in the place of what looks like a credential: words of commands and
/// images, which would be useless as a hash.
std::string without_credentials(std::string_view text);
/// The same for all texts in `json`.
Json json_without_credentials(Json json);

/// Returns the value, at most 1 kB of printable ASCII, where the variable is a documented setting
/// of a library or of Slurm. Otherwise it returns "sha256:" and 16 digits, by which two values can
/// still be distinguished.
std::string shown_variable(std::string_view name, std::string_view value);

}  // namespace scalemark
