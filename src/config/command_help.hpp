// What a subcommand is called with, as a table: FlagReader reads its words by it, and its help, the
// completion of shells and the manual page are printed from it.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace scalemark {

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

/// What the words ask for: --help or -h, perhaps followed by "all".
HelpLength asked_help(std::span<const std::string> arguments);

/// Flags that are used often, a line each, and the examples: at most 24 lines.
std::string screen_help(const CommandHelp& help, std::size_t columns);

/// Every flag in its group, and the notes.
std::string full_help(const CommandHelp& help, std::size_t columns);

/// The groups of that alone.
std::string grouped_flags(const std::vector<FlagGroup>& groups, std::size_t columns);

/// "what it is (a, b, c; default: b)".
std::string described(const FlagHelp& flag);

}  // namespace scalemark
