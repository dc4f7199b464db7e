// What the groups of keys are written with. A group is a struct in a file of this folder: its
// fields, the words of its enums, and up to three functions, templates so that whoever includes a
// group pays for no table:
//   describe(rows)          a row for each field (config/keys.cpp)
//   resolve(config, facts)  values of what is unset, from the model's facts and other keys
//   check(whole)            what no single key can tell (WholeConfig of config/load.cpp)
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/names.hpp"

namespace scalemark {

/// The subcommands whose flags come from the key table.
enum class Command { run, scale, infer, preflight };

constexpr std::string_view name_of(Command command) {
  constexpr std::array<std::string_view, 4> names{"run", "scale", "infer", "preflight"};
  return names[static_cast<std::size_t>(command)];
}

/// Says what a key decides: with `identity` what is computed, with `measurement` how it is
/// measured, and with `output` what is shown and where, and how ranks are started. The first two
/// make up config_hash.
enum class Role { identity, measurement, output };
constexpr auto names_of(Role) { return Names{"identity", "measurement", "output"}; }

enum class Trait {
  presentation,  ///< how one process shows its result: ranks may differ, a sweep decides it itself
  implied,       ///< not in config_hash: the world size, or the global batch in samples, says it
  found_by_run,  ///< a run's record knows it better than its configuration, which may say auto
  varies_with_ranks,  ///< may differ between the launches of one curve
  typed,    ///< of other commands than scale on the command line alone: a file's is a curve
  catalog,  ///< its words have a list of their own, `scalemark list`
};

template <typename E>
class EnumSet {
 public:
  template <std::same_as<E>... Member>
  constexpr EnumSet(Member... members) : bits_((0u | ... | bit(members))) {}

  constexpr bool contains(E member) const { return (bits_ & bit(member)) != 0; }
  bool operator==(const EnumSet&) const = default;

 private:
  static constexpr unsigned bit(E member) { return 1u << static_cast<unsigned>(member); }
  unsigned bits_;
};
using Commands = EnumSet<Command>;
using Traits = EnumSet<Trait>;

inline constexpr Commands kTraining{Command::run, Command::scale};
inline constexpr Commands kWithModel{Command::run, Command::scale, Command::infer};
inline constexpr Commands kEverywhere{Command::run, Command::scale, Command::infer,
                                      Command::preflight};

}  // namespace scalemark
