// From words of a command line to what cxxopts reads in them.
#pragma once

#include <cxxopts.hpp>
#include <span>
#include <string>
#include <vector>

namespace scalemark {

/// Words without the program. What cxxopts refuses is a ConfigError that begins with the program's
/// name and points to its help.
cxxopts::ParseResult parse_flags(cxxopts::Options options, std::vector<std::string> words);

/// Words between commas; ConfigError, which `flag` begins, for an empty one.
std::vector<std::string> split_list(const std::string& text, const char* flag);

/// The canonical name of a key; names of variables ("env.NAME") stay as they are.
std::string key_name(const std::string& word);
/// Both: keys between commas.
std::vector<std::string> key_list(const std::string& text, const char* flag);

}  // namespace scalemark
