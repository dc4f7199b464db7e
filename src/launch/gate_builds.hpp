// Measures two builds side by side by pairs of launches in random order until the verdict is clear
// or the budget is spent.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.hpp"
#include "config/sweep_plan.hpp"
#include "launch/launch.hpp"
#include "launch/point_launcher.hpp"

namespace scalemark {

// The functions below find the build that a user means: a program, its folder, or a commit of the
// source tree.

/// The word that scalemark --version prints for "gate" where its runs can be interleaved.
inline constexpr const char* kInterleavedWord = "turns";

/// Returns the build that `word` names: a program `scalemark`, a folder with it (itself or in
/// bin/), or else a commit, which scripts/build_commit builds in the source tree that this program
/// comes from. `flag` names it in messages. Throws ConfigError where it is none of these, and
/// EnvironmentError where it cannot be built or started.
Build build_of(const std::string& word, const std::string& flag);

/// Throws ConfigError where both words name one commit, so that there is nothing to judge.
void refuse_same_commit(const std::string& base, const std::string& fresh);

struct Commit {
  std::string hash, subject;
};

/// Returns the commit `base` of the source tree and those after it up to `fresh`, along the first
/// parents, so that a merge is one. Throws ConfigError where both are not commits, or none follows
/// `base`.
std::vector<Commit> commits_between(const std::string& base, const std::string& fresh);

/// Says in what the two builds of a pair alternate.
enum class Alternate { automatic, steps, launches };

struct GatedBuilds {
  SweepPlan plan, new_plan;         ///< the same points; the new build's with other settings
  std::string base, fresh;          ///< folder or program of a build, or a commit
  std::vector<std::string> varied;  ///< settings that differ on purpose
  GateDesign design;
  std::size_t allowed_to_fail = 0;    ///< launches of either build, also if they were repeated
  std::optional<double> max_seconds;  ///< no pair begins that would end later
  Alternate alternate = Alternate::automatic;
  std::filesystem::path folder;
};

/// Launches pairs of every point, one launch by each build, into DIR/base and DIR/new, which are
/// folders of sweeps; writes DIR/verdict.json and hands the same record to `report`. A launch that
/// fails ends it; the same command goes on from where it was.
ExitCode gate_builds(const GatedBuilds& builds, LaunchProgress& progress,
                     const std::function<void(const Verdict&)>& report);

/// Prints the command of every launch in its order.
void print_gate(const GatedBuilds& builds);

// The functions below are in bisect.cpp.

/// Gates the whole range from `asked.base` to `asked.fresh`, both commits of the source tree. Where
/// it regressed, halves it: the base is gated against the commit in the middle, which is on the
/// slow side if it has lost at least half of what the whole range has, until one commit is left,
/// which is gated against the one before it. A commit that can't be built, launched or told is left
/// out, and what is then left may be several. Writes DIR/verdict.json and hands it to `report`: of
/// that last gate, else of the whole range, with a note that names the commits. Each gate keeps its
/// launches in DIR/GOOD-COMMIT, from where the same command goes on.
ExitCode bisect_builds(const GatedBuilds& asked, LaunchProgress& progress,
                       const std::function<void(const Verdict&)>& report);

/// Prints the commits of the range and how many gates there will be.
void print_bisection(const GatedBuilds& asked);

}  // namespace scalemark
