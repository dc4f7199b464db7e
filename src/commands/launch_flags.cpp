// See launch_flags.hpp.
#include "commands/launch_flags.hpp"

#include <fmt/format.h>

#include "config/keys.hpp"
#include "config/values.hpp"

namespace scalemark {

void apply_launch_flags(SweepPlan& plan, const FlagReader& flags) {
  RunConfig launch;
  launch.launcher = plan.launcher;
  launch.hostfile = plan.hostfile;
  for (const char* name : {"launcher", "hostfile"}) {
    const Key& key = *find_key(name);
    if (const auto value = flags.text(name))
      key.set(launch, parse_value(key, *value, fmt::format("--{}", name)));
  }
  plan.launcher = launch.launcher;
  plan.hostfile = launch.hostfile;
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

}  // namespace scalemark
