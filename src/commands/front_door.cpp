// See front_door.hpp.
#include "commands/front_door.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "commands/list.hpp"
#include "commands/subcommands.hpp"
#include "config/text.hpp"
#include "report/shown_text.hpp"
#include "result/early_error.hpp"

namespace scalemark {
namespace {

[[noreturn]] void refuse_subcommand(const std::string& name) {
  if (std::ranges::find(kLaterSubcommands, name) != kLaterSubcommands.end())
    throw ConfigError(fmt::format("scalemark {} is not available in this version", name));
  std::vector<std::string> names;
  for (const Subcommand& subcommand : kSubcommands) names.emplace_back(subcommand.name);
  throw ConfigError(fmt::format("unknown subcommand {}{} (legal: {}; see scalemark --help)",
                                quote(name), did_you_mean(name, names), join(names, ", ")));
}

ExitCode dispatch(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(overview().c_str(), stderr);
    return ExitCode::usage;
  }
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") return print_help(overview());
  if (name == "--version") return print_help(version_text());
  const auto subcommand = std::ranges::find(kSubcommands, name, &Subcommand::name);
  if (subcommand == kSubcommands.end()) refuse_subcommand(name);
  return subcommand->call({{argv + 2, argv + argc}, argv});
}

}  // namespace

std::string overview() {
  std::size_t longest = 0;
  for (const Subcommand& subcommand : kSubcommands)
    longest = std::max(longest, subcommand.name.size());
  std::string rows;
  for (const auto& [name, purpose, call] : kSubcommands)
    rows += fmt::format("  {:<{}}  {}\n", name, longest, purpose);
  return fmt::format(
      R"(scalemark measures how well training of standard models scales from one rank to many.

Usage: scalemark SUBCOMMAND [--flag value]...

{}
  scalemark SUBCOMMAND --help   every flag, grouped
  scalemark --version           what this program was built with

Example: scalemark scale --model resnet50 --ranks 1,2 --repeats 3 --output curve.json
)",
      rows);
}

int front_door(int argc, char** argv) {
  try {
    return static_cast<int>(dispatch(argc, argv));
  } catch (const std::exception& error) {
    tell_before_mpi(exit_code_of(error), shown_lines(error.what()));
    return static_cast<int>(exit_code_of(error));
  }
}

}  // namespace scalemark
