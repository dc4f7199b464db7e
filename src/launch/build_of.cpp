// See build_of.hpp.
#include "launch/build_of.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "launch/program_output.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// For programs that only look something up; a file server that does not answer is no reason to
/// wait for ever.
constexpr double kLookUpSeconds = 60;

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         (fs::status(path, error).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

/// The source tree that this program was built in; empty where it was installed.
fs::path source_tree() {
  std::error_code error;
  for (fs::path up = own_path().parent_path(); up != up.parent_path(); up = up.parent_path())
    if (fs::exists(up / "scripts" / "build_commit", error)) return up;
  return {};
}

fs::path built_commit(const std::string& commit, const std::string& flag) {
  const fs::path tree = source_tree();
  if (tree.empty())
    refuse_at(flag, quote(commit) +
                        " is no program and no folder with one, and this scalemark has no source "
                        "tree to build a commit from; give the folder of a build");
  const ProgramOutput said =
      output_of({.command = {(tree / "scripts" / "build_commit").string(), commit}});
  if (!said.is_ok()) {
    const std::string what =
        fmt::format("{}: {} is no build and no commit that can be built", flag, quote(commit));
    if (said.status == static_cast<int>(ExitCode::usage)) throw ConfigError(what);
    throw EnvironmentError(what);
  }
  std::istringstream lines(said.text);
  std::string path;
  std::getline(lines, path);
  return path;
}

/// The commit that build_of() would build; empty where the word means something else.
std::string commit_of(const std::string& word) {
  const fs::path tree = source_tree();
  std::error_code error;
  if (tree.empty() || fs::exists(word, error)) return {};
  const ProgramOutput said =
      output_of({.command = {"git", "-C", tree.string(), "rev-parse", "--verify", "--quiet",
                             "--end-of-options", word + "^{commit}"},
                 .deadline_seconds = kLookUpSeconds});
  return said.is_ok() ? said.text : "";
}

/// What `PROGRAM --version` says.
Build described(const fs::path& program, const std::string& flag) {
  const ProgramOutput said =
      output_of({.command = {program.string(), "--version"}, .deadline_seconds = kLookUpSeconds});
  if (said.overdue)
    throw EnvironmentError(fmt::format("{}: {} --version has not ended within {:.0f} s", flag,
                                       program.string(), kLookUpSeconds));
  std::map<std::string, std::string> facts;
  std::istringstream lines(said.text);
  for (std::string line, name, value; std::getline(lines, line);)
    if (std::istringstream words(line); words >> name >> value) facts[name] = value;
  if (facts["revision"].empty())
    throw EnvironmentError(fmt::format("{}: {} --version names no revision; is it a scalemark?",
                                       flag, program.string()));
  return {program, facts["revision"], facts["gate"] == kTakesTurns};
}

}  // namespace

Build build_of(const std::string& word, const std::string& flag) {
  std::error_code error;
  fs::path program;
  for (const fs::path& candidate :
       {fs::path(word), fs::path(word) / "bin" / "scalemark", fs::path(word) / "scalemark"})
    if (program.empty() && is_program(candidate)) program = candidate;
  if (program.empty() && fs::exists(word, error))
    refuse_at(flag, quote(word) + " holds no scalemark and no bin/scalemark");
  if (program.empty()) program = built_commit(word, flag);
  program = fs::canonical(program, error);
  if (error) throw EnvironmentError(fmt::format("{}: {}", flag, error.message()));
  return described(program, flag);
}

void refuse_same_commit(const std::string& base, const std::string& fresh) {
  const std::string commit = commit_of(base);
  if (!commit.empty() && commit == commit_of(fresh))
    refuse_at("--new",
              fmt::format("{} is the commit of --base, {}; give another one, or with --new_set "
                          "KEY=VALUE what it is to do otherwise",
                          quote(fresh), commit.substr(0, 12)));
}

}  // namespace scalemark
