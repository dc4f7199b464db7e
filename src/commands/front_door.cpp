// Implements the program `scalemark`: subcommands, help and version. run, scale and infer go on to
// the engine or the launcher. The program does without LibTorch, MPI and CUDA, so that every
// refusal of a configuration comes within milliseconds.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "commands/list.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "launch/engine_start.hpp"
#include "platform/platform.hpp"
#include "report/shown_text.hpp"
#include "result/handover.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Returns the text in a form that roff prints unchanged, without control lines and with a '-' that
/// can be copied.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

/// Returns a word in bold with its text below.
std::string entry(const std::string& head, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

std::string flag_entry(const FlagHelp& flag) {
  const std::string letter = flag.letter ? fmt::format("\\-{}, ", flag.letter) : "";
  const std::string name = letter + "\\-\\-" + roff(flag.name);
  return entry(flag.value_name.empty()
                   ? ".B " + name
                   : fmt::format(".BI \"{} \" \"{}\"", name, roff(flag.value_name)),
               described(flag));
}

/// Returns the entry of a subcommand. Flags that several subcommands have are listed with each,
/// since a manual page is searched, not read.
std::string subcommand_entry(const Subcommand& subcommand) {
  const CommandHelp help = whole_help(subcommand, {});
  std::string text = fmt::format(".SS {}\n{}\n", help.name, roff(help.about));
  for (const std::string& usage : help.usages)
    text += fmt::format(".PP\n.B scalemark {}\n{}\n", help.name, roff(usage));
  for (const FlagGroup& group : help.groups) {
    text += fmt::format(".PP\n.I {}\n", roff(group.heading));
    for (const FlagHelp& flag : group.flags) text += flag_entry(flag);
  }
  text += ".PP\nExamples:\n.nf\n";
  for (const std::string& example : help.examples) text += roff(example) + "\n";
  return text + ".fi\n";
}

std::string exit_status() {
  std::map<int, std::string_view> words;
  for (const ExitCodeWords& known : kExitCodes) words[static_cast<int>(known.code)] = known.words;
  std::string text;
  for (const auto& [code, word] : words)
    text += entry(fmt::format(".B {}", code), std::string(word));
  return text;
}

constexpr std::string_view kHead = R"(.SH NAME
scalemark \- measure how training of standard models scales over ranks
.SH SYNOPSIS
.B scalemark
.I subcommand
.RI [ --flag " " value ]...
.br
.B mpirun \-n 4 scalemark run
.RI [ --flag " " value ]...
.SH DESCRIPTION
scalemark trains ResNet, Transformer and BERT models on synthetic data, on one rank or many (MPI on
CPUs, NCCL on GPUs), and reports images, tokens or sequences per second with intervals, speedup and
efficiency, and why scaling falls short, as JSON records. In flags \- and _ are alike.
.SH SUBCOMMANDS
)";

constexpr std::string_view kFoot = R"(.SH ENVIRONMENT
.TP
.BI SCALEMARK_ KEY
The value of any key, between the file of
.B \-\-config
and the command line.
.SH FILES
.TP
.I PREFIX/share/scalemark/configs
Configurations and plans of sweeps.
.TP
.I PREFIX/share/scalemark/docs
What every command, number and file means; licences of what it uses.
.TP
.I PREFIX/libexec/scalemark\-engine
The program that computes;
.B scalemark
becomes it.
.SH SEE ALSO
.BR mpirun (1),
.BR srun (1)
)";

/// Returns the manual page scalemark.1, in the man macros of roff.
std::string manual_page() {
  const record::Build build = build_info();
  std::string page =
      fmt::format(".TH SCALEMARK 1 \"{}\" \"scalemark {}\" \"User Commands\"\n{}",
                  build.committed_at.value_or("").substr(0, 10), build.version, kHead);
  for (const Subcommand& subcommand : kSubcommands)
    page += entry(fmt::format(".B {}", subcommand.name), std::string(subcommand.purpose));
  page += ".SH FLAGS\n";
  for (const Subcommand& subcommand : kSubcommands) page += subcommand_entry(subcommand);
  page += ".SH EXIT STATUS\n" + exit_status();
  return page.append(kFoot);
}

ExitCode print(const std::string& text) {
  print_data(text);
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

/// Removes --quiet from the words of a subcommand that has no key of that name.
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

/// Names the files that come with scalemark as the documents do, wherever it is called: a plan or
/// --config "configs/..." that is not here is the one of this installation.
std::vector<std::string> with_shipped_configs(std::vector<std::string> words) {
  constexpr std::string_view kFlag = "--config=", kFolder = "configs/";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string flag = words[i].starts_with(kFlag) ? std::string(kFlag) : "";
    const std::string path = words[i].substr(flag.size());
    const bool of_other_flag =
        i > 0 && words[i - 1].starts_with("--") && words[i - 1] != "--config";
    std::error_code error;
    if (!path.starts_with(kFolder) || of_other_flag || std::filesystem::exists(path, error))
      continue;
    if (const auto shipped = installed_share(own_path()) / path;
        std::filesystem::exists(shipped, error))
      words[i] = flag + shipped.string();
  }
  return words;
}

std::string help_of(const Subcommand& subcommand, const CommandLine& line, HelpLength length) {
  CommandHelp help = whole_help(subcommand, line);
  const auto share = installed_share(own_path());
  help.notes = with_installed_paths(help.notes, share);
  for (std::string& example : help.examples) example = with_installed_paths(example, share);
  const std::size_t columns = output_columns().value_or(80);
  return length == HelpLength::all ? full_help(help, columns) : screen_help(help, columns);
}

/// Implements `scalemark help [SUBCOMMAND [all]]` and `scalemark help --man`.
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
  if (const auto variables = variables_of_lone_task(process_environment()); !variables.empty()) {
    for (const std::string& variable : variables) unsetenv(variable.c_str());
    setenv("SLURM_OVERLAP", "1", 0);  // steps that are started from here share its cores
  }
  const std::string name = argv[1];
  const CommandLine line{with_shipped_configs({argv + 2, argv + argc}), argv};
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
    say_error_before_mpi(exit_code_of(error), shown_lines(words_of(error)));
    return static_cast<int>(exit_code_of(error));
  }
}

bool speaks() { return rank_before_mpi() == 0; }

void refuse_ranks(const std::string& why) {
  if (launcher_hint(process_environment()))
    throw ConfigError(why +
                      ": start it once, not by mpirun or srun (in a batch script of Slurm call it "
                      "as it is)");
}

}  // namespace scalemark
