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

}  // namespace scalemark
