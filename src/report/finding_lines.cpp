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

std::string text_of(const Json& finding, const char* key) {
  return finding.at(key).get<std::string>();
}

/// "The link: ranks wait for gradients. (likely)".
std::string what_is_found(const Json& finding) {
  const std::string sure = text_of(finding, "sure");
  return fmt::format("{} ({})", text_of(finding, "what"), sure == "hint" ? "a hint" : sure);
}

std::string lines_of_finding(const Json& finding) {
  const std::string why = text_of(finding, "why");
  std::string lines = wrapped(shown(what_is_found(finding)), kColumns, 2);
  if (!why.empty()) lines += indented("why: ", why);
  for (const Json& one : finding.at("try")) lines += indented("try: ", one.get<std::string>());
  return lines;
}

std::vector<Json> findings_to_tell(const Json& record, const std::string& told) {
  std::vector<Json> findings;
  const auto found = record.find("findings");
  if (found == record.end() || !found->is_array()) return findings;
  for (const Json& finding : *found)
    if ((" " + told + " ").find(" " + text_of(finding, "rule") + " ") == told.npos)
      findings.push_back(finding);
  return findings;
}

}  // namespace

std::string finding_lines(const Json& record, const std::string& told) {
  std::string lines;
  for (const Json& finding : findings_to_tell(record, told)) lines += lines_of_finding(finding);
  return lines;
}

std::vector<std::string> finding_sentences(const Json& record, const std::string& told) {
  std::vector<std::string> sentences;
  for (const Json& finding : findings_to_tell(record, told))
    sentences.push_back(what_is_found(finding) + " " + text_of(finding, "why"));
  return sentences;
}

}  // namespace scalemark
