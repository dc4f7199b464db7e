// See cpu_masks.hpp.
#include "commands/cpu_masks.hpp"

#include <memory>

#include "analysis/preflight/masks.hpp"
#include "config/cpu_masks.hpp"
#include "measure/clock.hpp"
#include "report/preflight_table.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

/// Each would write the same record.
void refuse_among_ranks() {
  const auto hint = launcher_hint(process_environment());
  if (hint && hint->tasks > 1)
    refuse_at("--cpu_masks", "judges masks without ranks: start it alone, not by " + hint->name);
}

}  // namespace

ExitCode judge_cpu_masks(LoadedConfig loaded) {
  const ResolvedConfig& config = loaded.config;
  refuse_among_ranks();
  const auto rules = read_preflight_rules(config.rules);
  std::unique_ptr<ResultFile> output;
  if (config.output) output = std::make_unique<ResultFile>(*config.output);
  const Topology topology = load_topology();
  if (!topology)
    throw EnvironmentError("--cpu_masks: hwloc cannot tell what CPUs this machine has");
  if (!hwloc_topology_is_thissystem(topology.get()))
    loaded.warnings.push_back(
        "the masks are judged on the machine of HWLOC_SYNTHETIC or HWLOC_XMLFILE, not on this one");
  for (const std::string& warning : loaded.warnings) say("warning: " + warning);
  const RecordContext context{loaded, system_info(), recorded_environment(process_environment())};
  const Json record =
      judged_masks(context, topology.get(), parse_cpu_masks(*config.cpu_masks), rules);
  deliver(record, output.get(), config.json);
  if (!config.json) (output ? show : put)(pinning_table(record));
  if (output) note("record: " + output->path().string());
  return record["verdict"] == "fail" ? ExitCode::failed : ExitCode::ok;
}

}  // namespace scalemark
