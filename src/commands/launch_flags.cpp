// See launch_flags.hpp.
#include "commands/launch_flags.hpp"

#include <fmt/format.h>

#include "config/keys.hpp"
#include "config/values.hpp"

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

}  // namespace scalemark
