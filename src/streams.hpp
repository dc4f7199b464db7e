// stdin, stdout and stderr of a program of ours. What becomes of them decides nothing but what is
// delivered: a reader that leaves, a full disk or a closed terminal costs no measurement.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "error.hpp"

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
void put(std::string_view text);

/// What people watch on stdout while a result is kept elsewhere. Never throws.
void show(std::string_view text) noexcept;

/// Writes all of it, also to a descriptor that does not block. 0 or the errno of what went wrong.
int write_whole(int descriptor, std::string_view bytes) noexcept;

}  // namespace scalemark
