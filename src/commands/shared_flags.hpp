// Defines flags that several subcommands have: those of a launch, which take precedence over a
// plan's, and those that say where the record of a command that only reads goes.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "config/flags.hpp"
#include "config/sweep_plan.hpp"
#include "record/write.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {

/// Applies --launcher, --hostfile and the flags of containers, where they were given. Throws
/// ConfigError.
void apply_launch_flags(SweepPlan& plan, const FlagReader& flags);

/// Return the help of these flags. `standard` says what holds without them.
FlagHelp launcher_flag(const std::string& standard);
FlagHelp hostfile_flag(const std::string& standard);
/// Returns the flags of containers as keys, which the plan may have too.
FlagGroup container_flags();
/// Returns the flag of replace_values().
FlagHelp value_flag();

/// Returns the group of a command's own flags, and behind it those of the job that it launches: all
/// but those that are called like one of its own, --again, and those that are to be left out.
std::vector<FlagGroup> with_job_flags(FlagGroup own, Command job,
                                      const std::vector<std::string>& left_out = {});

// The functions below say where the record of a command that only reads goes: to a file, and to
// stdout in one of three forms.

struct RecordOutput {
  bool json = false, markdown = false;  ///< instead of the table
  std::optional<std::string> file;
};

/// Returns the help of --output, --json and --markdown.
std::vector<FlagHelp> record_flags();

/// Reads --json, --markdown and --output. Throws ConfigError where both forms were requested.
RecordOutput read_record_output(const FlagReader& flags);

/// Writes the record, to stdout too where --json asks for it. Throws ResultError, and prints
/// nothing, where it can't write.
void write_out(const Json& record, const RecordOutput& output);

/// Writes the record, then prints it.
template <typename T>
void put_out(const T& record, const RecordOutput& output, std::string (*table)(const T&),
             std::string (*markdown)(const T&)) {
  if constexpr (std::same_as<T, Json>)
    write_out(record, output);
  else
    write_out(record_json(record), output);
  if (!output.json) print_data((output.markdown ? markdown : table)(record));
}

}  // namespace scalemark
