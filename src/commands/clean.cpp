// Implements `scalemark clean`, which removes what killed processes left on this host.
#include <fmt/format.h>

#include <algorithm>

#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "platform/processes.hpp"
#include "record/write.hpp"
#include "report/shown_text.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// What became of a leftover.
struct Cleared {
  std::string path, what;
  std::int64_t bytes;
  bool removed = false;
  std::optional<std::string> failure = {};
  static void describe(Fields& fields) {
    fields.add("path", &Cleared::path);
    fields.add("what", &Cleared::what);
    fields.add("bytes", &Cleared::bytes);
    fields.add("removed", &Cleared::removed);
    fields.add("failure", &Cleared::failure);
  }
};

struct ClearedList {
  std::vector<Cleared> leftovers;
  static void describe(Fields& fields) { fields.add("leftovers", &ClearedList::leftovers); }
};

/// Removes a leftover, or keeps it where it is only listed.
Cleared cleared(Leftover leftover, bool dry_run) {
  Cleared one{leftover.path.string(), leftover.what, leftover.bytes};
  if (dry_run) {
    leave_leftover(std::move(leftover));
    return one;
  }
  const std::string failure = remove_leftover(std::move(leftover));
  one.removed = failure.empty();
  if (one.removed) return one;
  one.failure = failure;
  say_error(fmt::format("{}: {}", shown(one.path), failure));
  return one;
}

std::string table_of(const std::vector<Cleared>& list, bool dry_run) {
  if (list.empty()) return "nothing is left behind\n";
  std::string text;
  double bytes = 0;
  for (const Cleared& one : list) {
    bytes += static_cast<double>(one.bytes);
    if (one.failure) continue;
    text += fmt::format("{} {} ({}, {} kB)\n", dry_run ? "would remove" : "removed",
                        shown(one.path), one.what, (one.bytes + 1023) / 1024);
  }
  return text + fmt::format("together {:.1f} MB\n", 1e-6 * bytes);
}

}  // namespace

CommandHelp commands::clean_help(const CommandLine&) {
  return {"clean",
          "Removes from this host what killed processes have left: private folders of scalemark, "
          "records that were not finished, session folders and shared memory of Open MPI. Only "
          "what is provably dead goes.",
          {"[RESULTS...] [--flag]..."},
          {{"Flags",
            {{.name = "dry_run", .text = "only lists it", .often_used = true, .letter = 'n'},
             {.name = "all_users", .text = "of root: what other users have left, too"},
             {.name = "json", .text = "the list as JSON on stdout, nothing else"}}}},
          {"scalemark clean --dry_run", "scalemark clean", "scalemark clean results"},
          "RESULTS: folders with results, looked through with all below them; without one the "
          "system's temporary folder and /dev/shm alone. Of Open MPI it is what is "
          "a minute old and what no process has open. Of other users nothing is touched without "
          "--all_users.\n"
          "Exit codes: 0 all is gone, 2 usage, 6 something could not be removed.\n"};
}

ExitCode commands::clean(const CommandLine& line) {
  const FlagReader flags(clean_help(line), "results", line.arguments);
  LeftoverPlaces places;
  places.all_users = flags.has("all_users");
  places.temporary = temporary_folder();
  for (const std::string& folder : flags.positionals("results")) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
      refuse_at("scalemark clean", folder + " is no folder");
    places.results.emplace_back(folder);
  }
  Leftovers leftovers = find_leftovers(places);
  for (const std::string& undecided : leftovers.undecided)
    say_error("left alone: " + shown(undecided));
  ClearedList list;
  for (Leftover& leftover : leftovers.found)
    list.leftovers.push_back(cleared(std::move(leftover), flags.has("dry_run")));
  const bool failed = std::ranges::any_of(
      list.leftovers, [](const Cleared& one) { return one.failure.has_value(); });
  print_data(flags.has("json") ? record_text(part_json(list))
                               : table_of(list.leftovers, flags.has("dry_run")));
  return failed ? ExitCode::result : ExitCode::ok;
}

}  // namespace scalemark
