// The verdict record: what docs/schema/verdict.schema.json asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate/judge.hpp"
#include "error.hpp"

namespace scalemark {

/// What a gate launched, where it launched anything.
struct GateLaunches {
  std::size_t launched = 0;  ///< launches that this verdict rests on or that were made for it
  std::size_t most = 0;      ///< that the budget of pairs allowed
  double seconds = 0;        ///< of all of them together
  std::string alternate;     ///< "steps": the launches of a pair took turns; "launches"
  std::string stopped;       ///< why no more pairs came: "verdict", "pairs", "max_seconds"
};

struct VerdictInput {
  const std::vector<ResultSet>& sets;  ///< base and new
  const Matching& matching;            ///< of them
  std::vector<std::string> varied;
  std::vector<std::string> notes, warnings;
  std::optional<GateLaunches> launches;
  Json baseline;  ///< identity of the base's baseline file, or null
};

/// Of sets that were judged. Status ok.
Json make_verdict_record(const VerdictInput& input, const Judgement& judgement);

/// What a gate was asked to keep to; it does not change once launches were looked at.
Json design_json(GateMode mode, const GateDesign& design);

/// Of a gate that could not begin.
Json make_failed_verdict(const Outcome& outcome);
/// Of a gate that came to none: a launch failed, or it was stopped.
Json make_failed_verdict(const Outcome& outcome, const GateDesign& design,
                         const GateLaunches& launches);

/// 1 regressed, 0 pass, 3 inconclusive.
ExitCode exit_code_of(const Judgement& judgement);

}  // namespace scalemark
