// Implements `scalemark export`, which prints records as one flat table.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "analysis/flat_rows.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "report/shown_text.hpp"
#include "result/records.hpp"
#include "result/result_set.hpp"
#include "result/sweep_folder.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

const std::vector<std::string> kFormats{"csv", "jsonl"};

class Table {
 public:
  explicit Table(bool csv) : csv_(csv) {}
  void add(const std::vector<Json>& row) {
    lines_ += csv_ ? csv_line(row) : json_line(row);
    ++rows_;
  }
  std::size_t rows() const { return rows_; }
  std::string text() const { return (csv_ ? csv_header() : "") + lines_; }

 private:
  bool csv_;
  std::string lines_;
  std::size_t rows_ = 0;
};

/// Reads records, in the order of paths.
class Export {
 public:
  explicit Export(Table& table) : table_(table) {}

  void add(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error))
      throw ConfigError(path.string() +
                        ": no such file or folder; give a record, or a folder of records");
    if (!fs::is_directory(path, error)) return add_record(path, path.filename());
    for (const fs::path& journal : files_below(path, ".jsonl")) add_journal(journal, path);
    const auto passed_by = [](const std::string& what) { say_error("left out: " + shown(what)); };
    for (const fs::path& file : files_below(path, ".json", passed_by)) try_record(file, path);
    add_losses();
  }
  void tell_left_out() const {
    for (const auto& [kind, count] : left_out_)
      say_error(fmt::format("left out: {} of kind {}, which has no rows", counted(count, "record"),
                            shown(kind)));
    if (!copies_.empty())
      say_error(fmt::format("left out as {} with an id that the table has already: {}",
                            counted(copies_.size(), "record"), shown(join(copies_, ", "))));
  }
  bool damaged() const { return damaged_; }

 private:
  struct Launch {
    JournalEntry entry;
    fs::path journal;
  };

  void add_journal(const fs::path& journal, const fs::path& root) {
    if (journal.filename() != journal_of("").filename()) return;
    guarded([&] {
      for (const JournalEntry& entry : last_entries(read_journal(journal))) {
        Launch launch{entry, journal.lexically_relative(root)};
        if (entry.record.empty())
          losses_.push_back(std::move(launch));
        else
          launches_.insert_or_assign((journal.parent_path() / entry.record).lexically_normal(),
                                     launch);
      }
    });
  }

  void try_record(const fs::path& path, const fs::path& root) {
    guarded([&] { add_record(path, path.lexically_relative(root)); });
  }

  void add_record(const fs::path& path, const fs::path& name) {
    const Json record = read_record_or_study(path);
    const std::string kind = kind_of(record);
    if (!has_flat_rows(kind)) {
      ++left_out_[kind];
      return;
    }
    if (!seen_.insert(id_of(record)).second) {
      copies_.push_back(name.string());
      return;
    }
    FlatPlace place{name.string()};
    if (const auto launch = launches_.find(path.lexically_normal()); launch != launches_.end()) {
      place.settings = launch->second.entry.settings;
      place.repeat = launch->second.entry.repeat;
    }
    for (const auto& row : flat_rows(record, place)) table_.add(row);
  }

  void add_losses() {
    for (const Launch& loss : losses_)
      table_.add(
          flat_row(loss.entry, {loss.journal.string(), loss.entry.settings, loss.entry.repeat}));
    losses_.clear();
  }

  /// Reads one file. A damaged file costs no row of the others.
  template <typename F>
  void guarded(F read) {
    try {
      read();
    } catch (const ResultError& error) {
      say_error("left out: " + shown_lines(error.what()));
      damaged_ = true;
    }
  }

  Table& table_;
  std::map<fs::path, Launch> launches_;
  std::vector<Launch> losses_;
  std::map<std::string, std::size_t> left_out_;
  std::set<std::string> seen_;       ///< ids of records
  std::vector<std::string> copies_;  ///< files with an id that was seen before
  bool damaged_ = false;
};

}  // namespace

CommandHelp commands::export_table_help(const CommandLine&) {
  return {"export",
          "Writes records as one flat table: a row a launch, and one a point of a curve or of "
          "instances, with column names that stay (docs/export.md).",
          {"PATH... [--flag value]..."},
          {{"Flags",
            {{.name = "format",
              .value_name = "NAME",
              .text = "of the table",
              .standard = "csv",
              .words = kFormats,
              .often_used = true},
             {.name = "output",
              .value_name = "FILE",
              .text = "instead of stdout",
              .often_used = true}}}},
          {"scalemark export results --output results.csv",
           "scalemark export run.json curve.json --format jsonl",
           "scalemark export sweep_folder | column -s, -t | less -S"},
          "PATH: a record, or a folder with every *.json and journal.jsonl below it. A launch that "
          "left no record has a row of what the journal tells. Other kinds of records are left "
          "out, and so is a damaged file of a folder; stderr names them.\n"
          "Exit codes: 0 all was read, 2 usage, 6 a file is damaged or foreign (the rows of the "
          "others are written), or the table can't be written.\n"};
}

ExitCode commands::export_table(const CommandLine& line) {
  const FlagReader flags(export_table_help(line), "paths", line.arguments);
  const auto paths = flags.positionals("paths");
  if (paths.empty()) refuse_at("scalemark export", "give a record, or a folder of records");
  const std::string format = flags.text("format").value_or("csv");
  check_choice("--format", format, kFormats);
  Table table(format == "csv");
  Export all(table);
  for (const std::string& path : paths) all.add(path);
  all.tell_left_out();
  if (table.rows() == 0)
    throw ConfigError("no record of a run, an inference, a curve or of instances in " +
                      join(paths, ", "));
  if (const auto output = flags.text("output"))
    ResultFile(*output, /*reserved_bytes=*/0).write_text(table.text());
  else
    print_data(table.text());
  return all.damaged() ? ExitCode::result : ExitCode::ok;
}

}  // namespace scalemark
