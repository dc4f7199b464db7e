// The key table: every setting of `run`, `scale`, `infer` and `preflight` with its type, legal
// values, role, help and commands. Flags, JSON files, SCALEMARK_* variables, help, documentation,
// the record's config and its hash all come from here; a new key is one field in RunConfig and one
// line in key_table.cpp.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

/// Of --batch_size, found or given.
inline constexpr std::int64_t kLargestBatchSize = 1'000'000;

enum class Kind { boolean, integer, real, text, choice, integers, injection, schedule };

/// What a key decides. identity: what is computed; measurement: how it is measured; output: what is
/// shown and where, and how ranks are started. The first two make up config_hash.
enum class Role { identity, measurement, output };

struct Key {
  std::string name;  ///< with underscores, as in files
  Kind kind = Kind::text;
  Role role = Role::identity;
  std::string group;       ///< heading in the help
  std::string value_name;  ///< placeholder in the help; empty for booleans
  std::string help;
  double lowest = 0, highest = 0;    ///< legal range of integer and real, both included
  std::vector<std::string> choices;  ///< legal words of choice
  std::vector<std::string> words;    ///< legal beside the numbers of integer
  std::vector<std::string> planned;  ///< words of later versions: refused, but not as unknown
  std::string unset;            ///< what happens without a value; empty where there is a default
  bool scale_only = false;      ///< a flag of `scale`, not of `run` and `infer`
  bool infer_only = false;      ///< a flag of `infer`, not of `run` and `scale`
  bool preflight_only = false;  ///< a flag of `preflight` alone
  bool listed = false;          ///< `scale` also takes a list, a curve each: an array, or a,b,c
  std::function<nlohmann::ordered_json(const RunConfig &)> get;
  std::function<void(RunConfig &, const nlohmann::ordered_json &)>
      set;  ///< of a value from check_value()

  Key in(double low, double high) &&;
  Key one_of(std::vector<std::string> words) &&;
  Key or_words(std::vector<std::string> words) &&;
  Key not_yet(std::vector<std::string> words) &&;
  Key otherwise(std::string meaning) &&;
  Key of_scale() &&;
  Key of_infer() &&;
  Key of_preflight() &&;
};

/// The table: every key, in the order of help and records.
std::vector<Key> make_key_table();
/// The same, made once.
const std::vector<Key> &all_keys();

std::string_view name_of(Command command);
/// True for a flag of this subcommand. A file or variable may hold other keys; they are ignored.
bool belongs(const Key &key, Command command);
/// True for what records of this subcommand show: a run's also show what is `scale`'s alone.
bool recorded(const Key &key, Command command);

/// The key of a canonical name; null for an unknown one.
const Key *find_key(std::string_view name);

/// Flags of the design that later versions will have.
const std::vector<std::string> &planned_flags();

/// "1 to 1000", "fp32, bf16", "true or false": for messages, help and documentation.
std::string legal_values(const Key &key);

/// The default as a user would write it, or what happens without a value.
std::string default_text(const Key &key);

std::string_view to_string(Role role);

}  // namespace scalemark
