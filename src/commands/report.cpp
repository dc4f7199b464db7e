// Implements `scalemark report`: a page of plots and words from records, made by scripts/report, or
// the words alone as JSON.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "analysis/diagnosis/diagnose.hpp"
#include "analysis/diagnosis/rules.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/json_text.hpp"
#include "launch/engine_start.hpp"
#include "platform/platform.hpp"
#include "result/records.hpp"
#include "result/result_set.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr const char* kStdin = "-";  // as a path: a list of files

struct ListedFile {
  std::string path;
  diagnosis::Settings settings;
};

/// Reads a list such as [{"path": "a.json", "settings": {"overlap": "none"}}, ...].
std::vector<ListedFile> listed_files(const std::string& text) {
  std::vector<ListedFile> files;
  try {
    for (const Json& file : Json::parse(text)) {
      files.push_back({file.at("path").get<std::string>(), {}});
      for (const auto& [key, value] : file.at("settings").items())
        files.back().settings[key] = value.get<std::string>();
    }
  } catch (const Json::exception& error) {
    throw ConfigError(std::string("the list of files on stdin: ") + error.what());
  }
  return files;
}

std::vector<ListedFile> files_of(const std::vector<std::string>& paths) {
  std::vector<ListedFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (path == kStdin) {
      const std::string text(std::istreambuf_iterator<char>(std::cin), {});
      for (ListedFile& file : listed_files(text)) files.push_back(std::move(file));
    } else if (fs::is_directory(path, error)) {
      for (const fs::path& file : files_below(path, ".json")) files.push_back({file.string(), {}});
    } else if (fs::exists(path, error)) {
      files.push_back({path, {}});
    } else {
      refuse_at("scalemark report", path + " does not exist; give a record or a folder of records");
    }
  }
  return files;
}

/// Returns {"findings", "rules": names of rules and their labels, "unread": files and what was
/// wrong}.
Json findings_of(const std::vector<ListedFile>& files) {
  diagnosis::Collection collection;
  Json unread = Json::array();
  for (const ListedFile& file : files) {
    try {
      collection.add(Json::parse(read_input_file(file.path, kLargestRecord)), file.settings);
    } catch (const InputFault& fault) {
      unread.push_back({{"path", file.path}, {"why", fault.what()}});
    } catch (const Json::exception& error) {
      unread.push_back({{"path", file.path}, {"why", error.what()}});
    }
  }
  Json rules = Json::object();
  for (const diagnosis::Rule& rule : diagnosis::all_rules())
    rules[std::string(rule.name)] = rule.label;
  return {{"findings", collection.findings()}, {"rules", rules}, {"unread", unread}};
}

}  // namespace

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
              .often_used = true},
             {.name = "standalone",
              .text = "a page to be mailed: no link leads out of it, and there is no FILE_plots/",
              .often_used = true},
             {.name = "findings",
              .text = "no page: the verdict in words as JSON on stdout, of records of any age"}}}},
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
  const std::vector<std::string> paths = flags.positionals("paths");
  if (paths.empty())
    refuse_at("scalemark report", "give a record, or a folder with records; see --help");
  const auto output = flags.text("output");
  if (flags.has("findings")) {
    if (output) refuse_at("--output", "is the page's; --findings writes to stdout");
    if (flags.has("standalone")) refuse_at("--standalone", "is the page's; --findings makes none");
    print_data(record_text(findings_of(files_of(paths))));
    return ExitCode::ok;
  }
  std::vector<std::string> words{"--program", own_path()};
  if (output) words.insert(words.end(), {"--output", *output});
  if (flags.has("standalone")) words.emplace_back("--standalone");
  words.emplace_back("--");
  words.insert(words.end(), paths.begin(), paths.end());
  become_report(find_report_program(own_path(), linked_torch(), process_environment()), words);
}

}  // namespace scalemark
