// A verdict for people, for CI servers and beside a commit: says what the verdict record says.
#pragma once

#include <string>

#include "result/records.hpp"

namespace scalemark {

/// One sentence: "regressed: new is 5.2 % slower than base [3.1, 7.0] (8 pairs, p = 0.0039)".
std::string verdict_sentence(const Json& verdict_record);

/// The sentence, a table of points, notes and warnings. Ends with a newline.
std::string verdict_table(const Json& verdict_record);
/// The same as Markdown.
std::string verdict_markdown(const Json& verdict_record);

/// JUnit XML: a test case for all points together, which decides, and one a point. Inconclusive is
/// "skipped", no verdict an "error".
std::string verdict_junit(const Json& verdict_record);

/// "::error title=scalemark gate::...": error for a regression, warning where nothing was shown,
/// else notice (GitHub's workflow commands).
std::string verdict_annotation(const Json& verdict_record);

}  // namespace scalemark
