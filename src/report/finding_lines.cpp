// See finding_lines.hpp.
#include "report/finding_lines.hpp"

#include <fmt/format.h>

#include "config/text.hpp"
#include "report/shown_text.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kColumns = 100;

std::string indented(const std::string& begin, const std::string& text) {
  return "  " + wrapped(begin + shown(text), kColumns - 2, 7);
}

std::string lines_of_finding(const Json& finding) {
  const auto text = [&](const char* key) { return finding.at(key).get<std::string>(); };
  const std::string sure = text("sure") == "hint" ? "a hint" : text("sure");
  std::string lines = wrapped(shown(fmt::format("{} ({})", text("what"), sure)), kColumns, 2);
  if (!text("why").empty()) lines += indented("why: ", text("why"));
  for (const Json& one : finding.at("try")) lines += indented("try: ", one.get<std::string>());
  return lines;
}

}  // namespace

std::string finding_lines(const Json& record, const std::string& told) {
  std::string lines;
  const auto found = record.find("findings");
  if (found == record.end() || !found->is_array()) return lines;
  for (const Json& finding : *found)
    if ((" " + told + " ").find(" " + finding.at("rule").get<std::string>() + " ") == told.npos)
      lines += lines_of_finding(finding);
  return lines;
}

}  // namespace scalemark
