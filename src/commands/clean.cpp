// scalemark clean: what killed processes left on this host.
#include <fmt/format.h>

#include "commands/subcommands.hpp"
#include "config/arguments.hpp"
#include "config/flags.hpp"
#include "platform/leftovers.hpp"
#include "report/shown_text.hpp"
#include "streams.hpp"
#include "talk.hpp"

namespace scalemark {

CommandHelp commands::clean_help(const CommandLine&) {
  return {"clean",
          "Removes from this host what killed processes have left: private folders of scalemark, "
          "records that were not finished, session folders and shared memory of Open MPI. Only "
          "what is provably dead goes.",
          {"[RESULTS...] [--flag]..."},
          {{"Flags",
            {{.name = "dry_run", .text = "only lists it", .often_used = true, .letter = 'n'}}}},
          {"scalemark clean --dry_run", "scalemark clean", "scalemark clean results"},
          "RESULTS: folders with results, looked through with all below them; without one the "
          "system's temporary folder and /dev/shm alone. Of Open MPI it is this user's (of root: "
          "everybody's) that is a minute old and that no process has open.\n"
          "Exit codes: 0 all is gone, 2 usage, 6 something could not be removed.\n"};
}

ExitCode commands::clean(const CommandLine& line) {
  const FlagReader flags(parse_words(clean_help(line), "results", canonical_flags(line.arguments)));
  LeftoverPlaces places;
  places.temporary = std::filesystem::temp_directory_path();
  for (const std::string& folder : flags.positionals("results")) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
      refuse_at("scalemark clean", folder + " is no folder");
    places.results.emplace_back(folder);
  }
  Leftovers leftovers = find_leftovers(places);
  for (const std::string& undecided : leftovers.undecided) tell("left alone: " + shown(undecided));
  ExitCode code = ExitCode::ok;
  std::int64_t bytes = 0;
  for (const Leftover& leftover : leftovers.found) bytes += leftover.bytes;
  for (Leftover& leftover : leftovers.found) {
    const std::string named = fmt::format("{} ({}, {} kB)", shown(leftover.path.string()),
                                          leftover.what, (leftover.bytes + 1023) / 1024);
    if (flags.has("dry_run")) {
      put("would remove " + named + "\n");
      leave_leftover(std::move(leftover));
    } else if (const std::string failure = remove_leftover(std::move(leftover)); failure.empty()) {
      put("removed " + named + "\n");
    } else {
      tell(fmt::format("{}: {}", named, failure));
      code = ExitCode::result;
    }
  }
  put(leftovers.found.empty()
          ? "nothing is left behind\n"
          : fmt::format("together {:.1f} MB\n", 1e-6 * static_cast<double>(bytes)));
  return code;
}

}  // namespace scalemark
