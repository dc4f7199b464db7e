// Colours of what people read, on a terminal alone: warnings and verdicts stand out.
#pragma once

#include <string>
#include <string_view>

namespace scalemark {

/// Whether what is written to `descriptor` (stdout, stderr) is coloured: it is a terminal; of a
/// rank, that of the supervisor which relays its lines; NO_COLOR is unset (no-color.org) and TERM
/// is not "dumb".
bool has_colours(int descriptor);

/// Ranks that are started from now on write what this process relays to its own streams.
void lend_colours();

/// The text with the first word of lines such as "warning: ...", "fail: ..." and "verdict: pass"
/// coloured; as it is where there are no colours.
std::string in_colour(std::string_view text, int descriptor);

}  // namespace scalemark
