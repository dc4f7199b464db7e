// Which build a user means: a program, its folder, or a commit of the source tree.
#pragma once

#include <string>

#include "launch/point_launcher.hpp"

namespace scalemark {

/// What scalemark --version says of "gate" where runs can measure in turns.
inline constexpr const char* kTakesTurns = "turns";

/// `word`: a program `scalemark`, a folder with it (itself or in bin/), or else a commit, which
/// scripts/build_commit builds in the source tree that this program comes from. `flag` names it in
/// messages. ConfigError where it is none of these, EnvironmentError where it can't be built or
/// started.
Build build_of(const std::string& word, const std::string& flag);

/// ConfigError where both words are names of one commit: there is nothing to judge.
void refuse_same_commit(const std::string& base, const std::string& fresh);

}  // namespace scalemark
