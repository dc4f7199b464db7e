// What programs of ours print. A name tells where a text goes and how much it matters:
//   print_data      stdout, what was asked for: an error where it does not get there
//   print_view      stdout, what people watch while a result is kept elsewhere
//   say_progress    stderr, a line as it is; silent with --quiet
//   say_info        stderr, "scalemark: ..."; silent with --quiet
//   warn            stderr, "warning: ..."
//   say_error       stderr, "scalemark: ...": an error, or what else nobody should miss
// What becomes of a stream decides nothing but what is delivered: a reader that leaves, a full disk
// or a closed terminal costs no measurement.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "error.hpp"
#include "json.hpp"

namespace scalemark {

/// Nothing but stdout failed: what was written elsewhere stands.
struct StdoutError : ResultError {
  explicit StdoutError(const std::string& what) : ResultError("stdout: " + what) {}
};

/// First in main(): opens those of the three that are closed, so that no file of ours takes their
/// place (a closed stdout stays one to which nothing can be written), and ignores the signals of
/// writes that fail, SIGPIPE and SIGXFSZ. Where stdout is a terminal, COLUMNS says how wide it is,
/// to the ranks that are started too.
void prepare_streams();

/// Columns for what is printed on stdout: what COLUMNS says, 40 or more; nullopt where it is not
/// set.
std::optional<std::size_t> output_columns();

/// What was asked for on stdout, whole. Throws StdoutError where it does not get there.
void print_data(std::string_view text);

/// From now on stdout has nothing but what print_data() and print_view() write: what libraries
/// and models print there goes to stderr. A rank whose lines pass through a launcher of ours marks
/// them (kMarksData).
void keep_stdout_for_data();

/// Set, ranks begin each line of data with it: a launcher puts words of its own before lines, and
/// lines of its own between them. It can stand in no JSON.
inline constexpr const char* kMarksData = "SMK_INTERNAL_MARKS_DATA";
inline constexpr std::string_view kDataMark = "\x1e";

/// Splits what a launcher passes on into the lines of data, without what it put before them, and
/// others.
class DataLines {
 public:
  struct Parts {
    std::string data, others;
  };
  Parts pass(std::string_view bytes);
  /// What came after the last line's end.
  Parts rest();

 private:
  std::string line_;
};

/// What people watch on stdout while a result is kept elsewhere. Never throws.
void print_view(std::string_view text) noexcept;

// Nothing that is measured waits for a reader that pauses (Ctrl-S, a pager) or a slow file.

/// Waits until `done()`. A wait without an end is a function of newer C++ libraries
/// (GLIBCXX_3.4.30) than Rocky 9 and Ubuntu 22.04 have, and one with an end is not.
template <class Done>
void wait_until_done(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                     Done done) {
  while (!changed.wait_for(lock, std::chrono::hours(1), done)) {
  }
}

/// Does what may block on a thread of its own, one task after the other.
class Aside {
 public:
  /// Where no thread can be made, tasks are done at once by whoever adds them.
  explicit Aside(std::size_t most_waiting);
  /// Waits for all tasks.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  /// Returns false where so many tasks wait that this one is left out.
  bool add(std::function<void()> task) noexcept;
  /// Waits until all tasks are done, for at most `seconds` where given; returns whether they are.
  bool finish(std::optional<double> seconds = std::nullopt) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// From now on all functions of this header but print_data() return at once, and what they print
/// follows. Of what a reader does not take, lines beyond some thousand are dropped, and counted.
void print_aside();
/// Waits until all is printed, for at most `seconds` where given.
void finish_printing(std::optional<double> seconds = std::nullopt) noexcept;

/// Writes all of it, also to a descriptor that does not block. 0 or the errno of what went wrong.
int write_whole(int descriptor, std::string_view bytes) noexcept;

// Whole lines on stderr, since stdout is data, and numbers as people read them.

/// A line as it is. Never throws, nor do those that follow.
void say_progress(std::string_view line);

/// The same as "scalemark: what": among the lines of a launcher and of other programs.
void say_info(std::string_view what);

/// "warning: what".
void warn(std::string_view what);

/// An error or what else nobody should miss, as "scalemark: what".
void say_error(std::string_view what);

/// From now on say_progress() is silent but for lines that begin with "warning: ", and say_info()
/// is: --quiet.
void be_quiet();
bool is_quiet();

/// Four significant digits without an exponent: "139.6", "7.520", "12345". 0 gives "0".
/// `like`: the value whose magnitude decides the number of decimals, so that bounds match their
/// centre.
std::string four_digits(double value, double like);
std::string four_digits(double value);

/// "1 launch", "3 launches".
std::string counted(std::size_t n, std::string_view what);

// stderr for programs (--progress jsonl): one JSON object a line, {"event": ..., "time": ..., ...},
// in place of what people read. docs/records.md lists the events.

/// For the rest of this process; all that goes to stderr becomes an event, too.
void use_event_lines();
bool uses_event_lines();

/// {"event": `event`, "time": seconds since 1970, and `fields`}, written at once. Never throws.
void write_event(std::string_view event, const Json& fields) noexcept;

// Colours of what people read, on a terminal alone: warnings and verdicts stand out.

/// Whether what is written to `descriptor` (stdout, stderr) is coloured: it is a terminal; of a
/// rank, that of the supervisor which relays its lines; NO_COLOR is unset (no-color.org) and TERM
/// is not "dumb".
bool has_colours(int descriptor);

/// Ranks that are started from now on write what this process relays to its own streams.
void lend_colours();

/// The text with the first word of lines such as "warning: ...", "fail: ..." and "verdict: pass"
/// coloured; as it is where there are no colours.
std::string in_colour(std::string_view text, int descriptor);
/// The same whatever it is written to.
std::string coloured(std::string_view text);

// The size that files of this process may have (RLIMIT_FSIZE, ulimit -f). prepare_streams() has
// SIGXFSZ ignored, so that a write beyond it fails and says so.

/// What an errno of a write means, with the limit and the remedy where it was that.
std::string write_error_words(int error);

/// Throws ResultError where the limit is below what several ranks need, or one below mpirun: they
/// share memory in files. Open MPI would end them by a signal, or send everything over TCP.
void refuse_too_small_for_ranks();

}  // namespace scalemark
