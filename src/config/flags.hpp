// Defines the flags of a subcommand as a table, from which its help, the completion of shells and
// the manual page are printed, and the reader of command lines, which uses the same table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace scalemark {

// The table below describes what a subcommand is called with: FlagReader reads command lines by it,
// and its help, the completion of shells and the manual page are printed from it.

struct FlagHelp {
  std::string name;                  ///< without dashes, canonical
  std::string value_name{};          ///< placeholder; empty: a switch
  std::string text{};                ///< what stands before the first ';' is enough to know it by
  std::string standard{};            ///< the default, or what happens without the flag
  std::vector<std::string> words{};  ///< the legal ones of a choice
  bool often_used = false;           ///< in the help that fits a screen
  bool repeated = false;             ///< may be given many times
  char letter = 0;                   ///< short form
};

struct FlagGroup {
  std::string heading;
  std::vector<FlagHelp> flags;
};

struct CommandHelp {
  std::string name;                 ///< "gate"
  std::string about;                ///< one sentence
  std::vector<std::string> usages;  ///< what follows the name
  std::vector<FlagGroup> groups;
  std::vector<std::string> examples;  ///< three commands
  std::string notes;                  ///< paragraphs, a line each
};

enum class HelpLength { none, screen, all };

/// Returns which help the words request: --help or -h, perhaps followed by "all".
HelpLength asked_help(std::span<const std::string> arguments);

/// Returns the flags that are used often, one line each, and the examples: at most 24 lines.
std::string screen_help(const CommandHelp& help, std::size_t columns);

/// Returns every flag in its group, and the notes.
std::string full_help(const CommandHelp& help, std::size_t columns);

/// Returns the groups of full_help() alone.
std::string grouped_flags(const std::vector<FlagGroup>& groups, std::size_t columns);

/// Returns a text such as "what it is (a, b, c; default: b)".
std::string described(const FlagHelp& flag);

/// A flag of a command line, or a word that is not a flag.
struct GivenWord {
  std::string name;                  ///< canonical, without dashes; empty: no flag
  std::optional<std::string> value;  ///< behind `=`, or the next word
  std::vector<std::string> written;  ///< the words themselves, one or two
};

/// Says whether a flag of this name, written without `=`, has the next word as its value.
using TakesValue = std::function<bool(const std::string& name)>;

/// Returns every word once, in its order. `-` and `_` are alike in names. Nothing after a "--" is a
/// flag.
std::vector<GivenWord> read_words(std::span<const std::string> arguments,
                                  const TakesValue& takes_value);

/// Returns the function for the flags of a table.
TakesValue takes_value_in(const CommandHelp& help);

/// Returns the words between commas. Throws ConfigError, which begins with `flag`, for an empty
/// one.
std::vector<std::string> split_list(const std::string& text, const std::string& flag);

/// Returns the canonical name of a key, also for its former name. Names of variables ("env.NAME")
/// stay as they are.
std::string key_name(const std::string& word);

/// Throws ConfigError, which begins with `flag`, unless `word` is one of the legal words.
void check_choice(const std::string& flag, const std::string& word,
                  const std::vector<std::string>& legal);

/// Returns the value of each flag. A ConfigError for a wrong value names the flag.
class FlagReader {
 public:
  /// Reads the words after a subcommand, whose flags are those of `help`. `positional` is the name
  /// of the words that are not flags, empty where there are none. Throws ConfigError, which begins
  /// with the command and refers to its help, for words that do not fit.
  FlagReader(const CommandHelp& help, const std::string& positional,
             std::span<const std::string> arguments);

  bool has(const std::string& name) const { return given_.contains(name); }
  std::optional<std::string> text(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;  ///< of a flag given many times
  std::vector<std::string> positionals(const std::string& name) const;  ///< words without a flag
  std::optional<double> number(const std::string& name, double low, double high) const;
  std::optional<double> positive(const std::string& name) const;
  std::optional<std::int64_t> whole(const std::string& name, std::int64_t low,
                                    std::int64_t high) const;
  /// Returns whole numbers between commas, sorted, each once.
  std::vector<std::int64_t> wholes(const std::string& name, std::int64_t low,
                                   std::int64_t high) const;
  std::vector<std::string> keys(const std::string& name) const;  ///< between commas

 private:
  std::vector<std::string> checked(const std::string& name, const std::string& place) const;

  std::map<std::string, std::vector<std::string>> given_;  ///< in their order; switches: "true"
};

}  // namespace scalemark
