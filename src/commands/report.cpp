// scalemark report: a page of plots and words from records, made by scripts/report.
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "launch/engine_start.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"

namespace scalemark {

CommandHelp commands::report_help(const CommandLine&) {
  return {"report",
          "One HTML file that opens without a network: a verdict in words, plots and tables of all "
          "records in folders. Each plot is also a PNG and an SVG.",
          {"PATH... [--flag]..."},
          {{"Flags",
            {{.name = "output",
              .value_name = "FILE.html",
              .text = "the page; plots go to FILE_plots/",
              .standard = "report.html in the first folder",
              .often_used = true}}}},
          {"scalemark report results/quickstart",
           "scalemark report results/a results/b --output ab.html", "scalemark report curve.json"},
          "PATH: a record, or a folder that run, scale, sweep, gate, instances, infer, preflight, "
          "project or compare has written, with all below it; mixtures too. Files that are damaged "
          "or of others are listed in the page. It needs Python with matplotlib and Jinja2, which "
          "scripts/setup fetches; SCALEMARK_PYTHON names another Python. The rules of the verdict: "
          "docs/report.md.\n"
          "Exit codes: 0 ok, 2 usage or no such path, 6 no record can be read or the page cannot "
          "be written, 7 Python or its packages are missing.\n"};
}

ExitCode commands::report(const CommandLine& line) {
  const FlagReader flags(report_help(line), "paths", line.arguments);
  std::vector<std::string> words;
  if (const auto output = flags.text("output")) words = {"--output", *output};
  const std::vector<std::string> paths = flags.positionals("paths");
  if (paths.empty())
    refuse_at("scalemark report", "give a record, or a folder with records; see --help");
  words.emplace_back("--");
  words.insert(words.end(), paths.begin(), paths.end());
  become_report(find_report_program(own_path(), linked_torch(), process_environment()), words);
}

}  // namespace scalemark
