// See launch_flags.hpp.
#include "launch/launch_flags.hpp"

#include <fmt/format.h>

#include "config/keys.hpp"
#include "config/values.hpp"

namespace scalemark {

void apply_launch_flags(SweepPlan& plan, const cxxopts::ParseResult& parsed) {
  RunConfig launch;
  launch.launcher = plan.launcher;
  launch.hostfile = plan.hostfile;
  for (const char* name : {"launcher", "hostfile"}) {
    if (parsed.count(name) == 0) continue;
    const Key& key = *find_key(name);
    key.set(launch, parse_value(key, parsed[name].as<std::string>(), fmt::format("--{}", name)));
  }
  plan.launcher = launch.launcher;
  plan.hostfile = launch.hostfile;
}

}  // namespace scalemark
