// Reads and describes flags that several subcommands have, and prints their records.
#include "commands/shared_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "config/keys.hpp"
#include "config/load.hpp"
#include "error.hpp"

namespace scalemark {

void apply_launch_flags(SweepPlan& plan, const FlagReader& flags) {
  RunConfig launch = launch_keys(plan);
  for (const char* name : kLaunchKeys) {
    const Key& key = *find_key(name);
    if (const auto value = flags.text(name))
      key.set(launch, parse_value(key, *value, fmt::format("--{}", name)));
  }
  set_launch_keys(plan, launch);
}

FlagHelp launcher_flag(const std::string& standard) {
  return {.name = "launcher",
          .value_name = "NAME",
          .text = "starts the ranks",
          .standard = standard,
          .words = find_key("launcher")->choices};
}

FlagHelp hostfile_flag(const std::string& standard) {
  return {
      .name = "hostfile", .value_name = "FILE", .text = "hosts of mpirun", .standard = standard};
}

FlagGroup container_flags() {
  FlagGroup group{"Container", {}};
  for (const char* name : {"container", "container_runtime", "container_program"}) {
    const Key& key = *find_key(name);
    group.flags.push_back({.name = key.name,
                           .value_name = key.value_name,
                           .text = key.help,
                           .standard = "the plan's"});
  }
  return group;
}

std::vector<FlagGroup> with_job_flags(FlagGroup own, Command job,
                                      const std::vector<std::string>& left_out) {
  const auto is_hidden = [&](const FlagHelp& flag) {
    return flag.name == "again" || std::ranges::find(left_out, flag.name) != left_out.end() ||
           std::ranges::find(own.flags, flag.name, &FlagHelp::name) != own.flags.end();
  };
  std::vector<FlagGroup> groups;
  for (FlagGroup& group : key_help(job).groups) {
    std::erase_if(group.flags, is_hidden);
    for (FlagHelp& flag : group.flags) flag.often_used = false;
    groups.push_back(std::move(group));
  }
  groups.insert(groups.begin(), std::move(own));
  return groups;
}

FlagHelp value_flag() {
  return {.name = "value",
          .value_name = "NAME=TEXT",
          .text = "what {NAME} in commands of the plan stands for",
          .standard = "the plan's",
          .repeated = true};
}

std::vector<FlagHelp> record_flags() {
  return {{.name = "output",
           .value_name = "FILE",
           .text = "where the record is written",
           .often_used = true},
          {.name = "json", .text = "the record on stdout, nothing else", .often_used = true},
          {.name = "markdown", .text = "tables in Markdown", .often_used = true}};
}

RecordOutput read_record_output(const FlagReader& flags) {
  const RecordOutput output{flags.has("json"), flags.has("markdown"), flags.text("output")};
  if (output.json && output.markdown)
    throw ConfigError("--json and --markdown: stdout has place for one of them; leave one out");
  return output;
}

void write_out(const Json& record, const RecordOutput& output) {
  refuse_numberless(record);
  std::unique_ptr<ResultFile> file;
  if (output.file) file = std::make_unique<ResultFile>(*output.file);
  deliver(record, file.get(), output.json);
}

}  // namespace scalemark
