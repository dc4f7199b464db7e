// Implements `scalemark clean`, which removes what killed processes left on this host.
#include <fmt/format.h>

#include <algorithm>

#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "platform/processes.hpp"
#include "report/shown_text.hpp"
#include "result/records.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Removes a leftover, or keeps it where it is only listed.
Json cleared(Leftover leftover, bool dry_run) {
  Json one{{"path", leftover.path.string()},
           {"what", leftover.what},
           {"bytes", leftover.bytes},
           {"removed", false},
           {"failure", nullptr}};
  if (dry_run) {
    leave_leftover(std::move(leftover));
    return one;
  }
  const std::string failure = remove_leftover(std::move(leftover));
  one["removed"] = failure.empty();
  if (failure.empty()) return one;
  one["failure"] = failure;
  say_error(fmt::format("{}: {}", shown(one["path"].get<std::string>()), failure));
  return one;
}

std::string table_of(const Json& list, bool dry_run) {
  if (list.empty()) return "nothing is left behind\n";
  std::string text;
  double bytes = 0;
  for (const Json& one : list) {
    const std::int64_t size = one.at("bytes");
    bytes += static_cast<double>(size);
    if (!one.at("failure").is_null()) continue;
    text += fmt::format("{} {} ({}, {} kB)\n", dry_run ? "would remove" : "removed",
                        shown(one.at("path").get<std::string>()), one.at("what").get<std::string>(),
                        (size + 1023) / 1024);
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
             {.name = "json", .text = "the list as JSON on stdout, nothing else"}}}},
          {"scalemark clean --dry_run", "scalemark clean", "scalemark clean results"},
          "RESULTS: folders with results, looked through with all below them; without one the "
          "system's temporary folder and /dev/shm alone. Of Open MPI it is this user's (of root: "
          "everybody's) that is a minute old and that no process has open.\n"
          "Exit codes: 0 all is gone, 2 usage, 6 something could not be removed.\n"};
}

ExitCode commands::clean(const CommandLine& line) {
  const FlagReader flags(clean_help(line), "results", line.arguments);
  LeftoverPlaces places;
  places.temporary = std::filesystem::temp_directory_path();
  for (const std::string& folder : flags.positionals("results")) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
      refuse_at("scalemark clean", folder + " is no folder");
    places.results.emplace_back(folder);
  }
  Leftovers leftovers = find_leftovers(places);
  for (const std::string& undecided : leftovers.undecided)
    say_error("left alone: " + shown(undecided));
  Json list = Json::array();
  for (Leftover& leftover : leftovers.found)
    list.push_back(cleared(std::move(leftover), flags.has("dry_run")));
  const bool failed =
      std::ranges::any_of(list, [](const Json& one) { return !one["failure"].is_null(); });
  print_data(flags.has("json") ? record_text({{"leftovers", list}})
                               : table_of(list, flags.has("dry_run")));
  return failed ? ExitCode::result : ExitCode::ok;
}

}  // namespace scalemark
