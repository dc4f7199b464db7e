// Flags that several subcommands have: those of a launch, which beat a plan's, and where the record
// of a command that only reads goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/flags.hpp"
#include "config/sweep_plan.hpp"
#include "result/records.hpp"

namespace scalemark {

/// --launcher, --hostfile and those of containers, where they were given. Throws ConfigError.
void apply_launch_flags(SweepPlan& plan, const FlagReader& flags);

/// Their help; `standard` says what holds without them.
FlagHelp launcher_flag(const std::string& standard);
FlagHelp hostfile_flag(const std::string& standard);
/// As keys of containers, which the plan may have too.
FlagGroup container_flags();

// Where the record of a command that only reads goes: to a file, and to stdout in one of three
// forms.

struct RecordOutput {
  bool json = false, markdown = false;  ///< instead of the table
  std::optional<std::string> file;
};

/// Help of --output, --json and --markdown.
std::vector<FlagHelp> record_flags();

/// --json, --markdown and --output. ConfigError where both forms were asked for.
RecordOutput read_record_output(const FlagReader& flags);

/// Writes the record, then prints it. Throws ResultError, and prints nothing, where it can't write.
void put_out(const Json& record, const RecordOutput& output, std::string (*table)(const Json&),
             std::string (*markdown)(const Json&));

}  // namespace scalemark
