// See front_door.hpp.
#include "commands/front_door.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "commands/list.hpp"
#include "commands/manual_page.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "report/shown_text.hpp"
#include "result/early_error.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {
namespace {

ExitCode print(const std::string& text) {
  put(text);
  return ExitCode::ok;
}

const Subcommand& find_subcommand(const std::string& name) {
  const auto found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  if (found != kSubcommands.end()) return *found;
  std::vector<std::string> names;
  for (const Subcommand& subcommand : kSubcommands) names.emplace_back(subcommand.name);
  throw ConfigError(fmt::format("unknown subcommand {}{} (legal: {}; see scalemark --help)",
                                quote(name), did_you_mean(name, names), join(names, ", ")));
}

bool has_flag(const CommandHelp& help, std::string_view name) {
  return std::ranges::any_of(help.groups, [&](const FlagGroup& group) {
    return std::ranges::find(group.flags, name, &FlagHelp::name) != group.flags.end();
  });
}

/// Takes --quiet from the words of a subcommand that has no key of that name.
CommandLine without_quiet(const Subcommand& subcommand, const CommandLine& line) {
  const CommandHelp help = subcommand.help(line);
  if (has_flag(help, "quiet")) return line;
  CommandLine left{{}, line.argv};
  for (const GivenWord& given : read_words(line.arguments, takes_value_in(help)))
    if (given.name == "quiet" && !given.value)
      be_quiet();
    else
      left.arguments.insert(left.arguments.end(), given.written.begin(), given.written.end());
  return left;
}

std::string help_of(const Subcommand& subcommand, const CommandLine& line, HelpLength length) {
  CommandHelp help = whole_help(subcommand, line);
  const auto share = installed_share(own_path());
  help.notes = with_installed_paths(help.notes, share);
  for (std::string& example : help.examples) example = with_installed_paths(example, share);
  const std::size_t columns = output_columns().value_or(80);
  return length == HelpLength::all ? full_help(help, columns) : screen_help(help, columns);
}

/// scalemark help [SUBCOMMAND [all]], scalemark help --man.
ExitCode help(const std::vector<std::string>& words) {
  if (words.empty() || asked_help(words) != HelpLength::none) return print(overview());
  if (words.front() == "--man") return print(manual_page());
  const bool all = words.size() > 1 && (words[1] == "all" || words[1] == "--all");
  return print(
      help_of(find_subcommand(words.front()), {}, all ? HelpLength::all : HelpLength::screen));
}

ExitCode dispatch(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(overview().c_str(), stderr);
    return ExitCode::usage;
  }
  const std::string name = argv[1];
  const CommandLine line{{argv + 2, argv + argc}, argv};
  if (name == "--help" || name == "-h" || name == "help") return help(line.arguments);
  if (name == "--version") return print(version_text());
  const Subcommand& subcommand = find_subcommand(name);
  if (const HelpLength length = asked_help(line.arguments); length != HelpLength::none)
    return print(help_of(subcommand, line, length));
  return subcommand.call(without_quiet(subcommand, line));
}

}  // namespace

CommandHelp whole_help(const Subcommand& subcommand, const CommandLine& line) {
  CommandHelp help = subcommand.help(line);
  if (!has_flag(help, "quiet"))
    help.groups.push_back(
        {"Messages", {{.name = "quiet", .text = "stderr has warnings and errors alone"}}});
  return help;
}

std::string overview() {
  std::size_t longest = 0;
  for (const Subcommand& subcommand : kSubcommands)
    longest = std::max(longest, subcommand.name.size());
  std::string rows;
  for (const Subcommand& subcommand : kSubcommands)
    rows += fmt::format("  {:<{}}  {}\n", subcommand.name, longest, subcommand.purpose);
  return fmt::format(
      R"(scalemark measures how well training scales from one rank to many, and why.

Usage: scalemark SUBCOMMAND [--flag value]...

{}
Examples:
  scalemark scale --model resnet50 --ranks 1,2 --output curve.json
  mpirun -n 4 scalemark run --model bert_base --output run.json
  scalemark compare results/before results/after

Help: scalemark help SUBCOMMAND [all]. Built with: scalemark --version
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
