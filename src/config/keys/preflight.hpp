// Defines the keys of `preflight`: what is checked, how long, and against which rules.
#pragma once

#include "config/keys/group.hpp"
#include "config/value_syntax.hpp"

namespace scalemark {

struct PreflightSettings {
  std::vector<std::int64_t> sizes;        ///< bytes of the collectives; empty: 8 B to 64 MiB
  double seconds = 1;                     ///< of measuring, for each kind of check
  std::optional<std::string> scratch;     ///< folder; unset: the system's temporary folder
  double scratch_mb = 64;                 ///< MiB of the scratch file
  std::optional<std::string> rules;       ///< path; unset: the rules that need no baseline
  std::optional<std::string> make_rules;  ///< path of the rules that this measurement makes
  double rules_margin = 0.15;             ///< fraction between a measured number and its limit
  bool pinning = false;                   ///< where ranks run, and nothing else
  std::optional<std::string> cpu_masks;   ///< of ranks that are not started

  static void describe(auto& rows) {
    using S = PreflightSettings;
    rows.group("Checks (preflight)", Role::measurement, Command::preflight);
    rows.add("sizes", &S::sizes, "BYTES,...|auto",
             "of the collectives; auto: 8, 1024, 65536, 1048576, 16777216, 67108864; on GPUs to 1 "
             "GiB, "
             "and more than that on GPUs alone")
        .in(4, std::int64_t{8} << 30);
    rows.add("seconds", &S::seconds, "SECONDS",
             "of measuring, for each of GEMM, memory and noise; a tenth of it for each collective "
             "and size")
        .in(0.01, 3600);
    rows.add("scratch", &S::scratch, "DIR", "where a scratch file is written, read and removed")
        .role(Role::output)
        .otherwise("TMPDIR, or /tmp");
    rows.add("scratch_mb", &S::scratch_mb, "MIB", "of the scratch file, one a host").in(1, 1048576);
    rows.add("rules", &S::rules, "FILE", "limits that the measured numbers must keep")
        .role(Role::output)
        .otherwise("those that need no baseline")
        .often_used();
    rows.add("make_rules", &S::make_rules, "FILE",
             "write rules with these numbers; of nodes known to be good")
        .role(Role::output)
        .otherwise("no file")
        .often_used();
    rows.add("rules_margin", &S::rules_margin, "FRACTION",
             "of --make_rules: between a measured number and its limit")
        .role(Role::output)
        .in(0, 0.99);
    rows.add("pinning", &S::pinning, "",
             "only where ranks run: host, cores, NUMA node, GPU, binding")
        .role(Role::output)
        .often_used();
    rows.add("cpu_masks", &S::cpu_masks, "MASK,...",
             "with --pinning: where ranks of this machine would run with srun "
             "--cpu-bind=mask_cpu:MASK,...; starts none")
        .role(Role::output)
        .otherwise("where the ranks run that are started")
        .often_used();
  }

  static void check(const auto& whole) {
    if (whole.command != Command::preflight) return;
    const auto& config = whole.given;
    if (config.inject && config.inject->kind != "corrupt_allreduce")
      whole.refuse(
          "--inject {}: preflight has no steps; corrupt_allreduce is the fault that it has",
          config.inject->kind);
    if (config.seconds >= config.timeout)
      whole.refuse("--seconds {} does not end before --timeout {}, the deadline of a measurement",
                   config.seconds, config.timeout);
    if (config.pinning && config.make_rules)
      whole.refuse("--pinning measures nothing that --make_rules could hold: leave out one");
    if (!config.cpu_masks) return;
    if (!config.pinning) whole.refuse("--cpu_masks says where ranks would run: give --pinning too");
    if (!config.ranks.empty())
      whole.refuse("--cpu_masks has a mask a rank and starts none: leave out --ranks");
    parse_cpu_masks(*config.cpu_masks);
  }
};

}  // namespace scalemark
