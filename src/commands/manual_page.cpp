// See manual_page.hpp.
#include "commands/manual_page.hpp"

#include <fmt/format.h>

#include <map>

#include "commands/subcommands.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {

/// As roff would print it: no control lines, and a '-' that can be copied.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

/// A word in bold with its text below.
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

/// Flags that several subcommands have are said with each: a page is searched, not read.
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

}  // namespace

std::string manual_page() {
  const Json build = build_info();
  const Json& time = build.at("committed_at");
  std::string page = fmt::format(".TH SCALEMARK 1 \"{}\" \"scalemark {}\" \"User Commands\"\n{}",
                                 time.is_string() ? time.get<std::string>().substr(0, 10) : "",
                                 build.at("version").get<std::string>(), kHead);
  for (const Subcommand& subcommand : kSubcommands)
    page += entry(fmt::format(".B {}", subcommand.name), std::string(subcommand.purpose));
  page += ".SH FLAGS\n";
  for (const Subcommand& subcommand : kSubcommands) page += subcommand_entry(subcommand);
  page += ".SH EXIT STATUS\n" + exit_status();
  return page.append(kFoot);
}

}  // namespace scalemark
