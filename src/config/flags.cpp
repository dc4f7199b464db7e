// See flags.hpp.
#include "config/flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/text.hpp"
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

std::vector<std::string> split_list(const std::string& text, const char* flag) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    if (words.back().empty())
      throw ConfigError(fmt::format("{}: {} has an empty word", flag, quote(text)));
    begin = end + 1;
  }
  return words;
}

std::string key_name(const std::string& word) {
  return word.starts_with("env.") ? word : canonical_name(word);
}

std::vector<std::string> key_list(const std::string& text, const char* flag) {
  std::vector<std::string> keys = split_list(text, flag);
  for (std::string& key : keys) key = key_name(key);
  return keys;
}

}  // namespace scalemark
