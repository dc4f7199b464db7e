// From words of a command line to what cxxopts reads in them.
#pragma once

#include <cstdint>
#include <cxxopts.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scalemark {

/// Words without the program. What cxxopts refuses is a ConfigError that begins with the program's
/// name and points to its help.
cxxopts::ParseResult parse_flags(std::string program, cxxopts::Options options,
                                 std::vector<std::string> words);

/// Words between commas; ConfigError, which `flag` begins, for an empty one.
std::vector<std::string> split_list(const std::string& text, const std::string& flag);

/// The canonical name of a key, of its former name too; names of variables ("env.NAME") stay as
/// they are.
std::string key_name(const std::string& word);

/// ConfigError that begins with `flag`, unless `word` is one of the legal ones.
void check_choice(const std::string& flag, const std::string& word,
                  const std::vector<std::string>& legal);

/// What each flag says; a ConfigError for what is wrong names the flag.
class FlagReader {
 public:
  explicit FlagReader(const cxxopts::ParseResult& parsed) : parsed_(parsed) {}

  bool has(const std::string& name) const { return parsed_.count(name) > 0; }
  std::optional<std::string> text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;  ///< of a flag given many times
  std::vector<std::string> positionals(const std::string& name) const;  ///< words without a flag
  std::optional<double> number(const std::string& name, double low, double high) const;
  std::optional<double> positive(const std::string& name) const;
  std::optional<std::int64_t> whole(const std::string& name, std::int64_t low,
                                    std::int64_t high) const;
  /// Between commas; sorted, each once.
  std::vector<std::int64_t> wholes(const std::string& name, std::int64_t low,
                                   std::int64_t high) const;
  std::vector<std::string> keys(const std::string& name) const;  ///< between commas

 private:
  std::vector<std::string> checked(const std::string& name, const std::string& place) const;

  cxxopts::ParseResult parsed_;
};

}  // namespace scalemark
