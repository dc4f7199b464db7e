// See flags.hpp.
#include "config/flags.hpp"

#include <fmt/format.h>

#include "error.hpp"

namespace scalemark {

cxxopts::ParseResult parse_flags(cxxopts::Options options, std::vector<std::string> words) {
  std::string program = options.program();
  std::vector<char*> argv{program.data()};  // cxxopts 2 wants them mutable
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  char** begin = argv.data();
  try {
    return options.parse(argc, begin);
  } catch (const std::exception& error) {  // cxxopts 2 and 3 have different exception classes
    throw ConfigError(fmt::format("{0}: {1}; see {0} --help", options.program(), error.what()));
  }
}

}  // namespace scalemark
