// Decodes UTF-8 and replaces or escapes what must not be shown as it is, and words findings.
#include "report/shown_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/text.hpp"
#include "record/read.hpp"

namespace scalemark {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Holds a code point and the number of bytes that it took. Without a code point the bytes are
/// ill-formed and to be skipped.
struct Decoded {
  std::optional<char32_t> code;
  std::string_view bytes;
};

/// Has the least code point for each number of bytes. A smaller code point has a shorter form.
constexpr char32_t kLeastOfLength[] = {0, 0, 0x80, 0x800, 0x10000};

std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

/// Returns the first code point of a text that is not empty (RFC 3629).
Decoded decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(lead);
  if (length == 1) return {lead, text.substr(0, 1)};
  if (length == 0) return {std::nullopt, text.substr(0, 1)};
  char32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
      return {std::nullopt, text.substr(0, i)};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeastOfLength[length] || surrogate || code > 0x10FFFF)
    return {std::nullopt, text.substr(0, length)};
  return {code, text.substr(0, length)};
}

/// Returns whether the code point is a tab, or ends a line or a paragraph.
bool is_break(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x85 || code == 0x2028 || code == 0x2029;
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

/// Returns whether the code point is one of the "Directional Formatting Characters" of Unicode
/// Standard Annex 9.
bool is_bidirectional(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_noncharacter(char32_t code) {
  return (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
}

/// Returns whether XML 1.0, production [2], allows the code point.
bool is_xml_character(char32_t code) {
  return code == 0x09 || code == 0x0A || code == 0x0D ||
         (code >= 0x20 && code != 0xFFFE && code != 0xFFFF);
}

/// Returns what is shown for a code point on a terminal.
std::string shown_code(const Decoded& one) {
  if (one.code && is_break(*one.code)) return " ";
  if (!one.code || is_control(*one.code) || is_bidirectional(*one.code) ||
      is_noncharacter(*one.code))
    return kReplacement;
  return std::string(one.bytes);
}

std::string xml_code(const Decoded& one) {
  if (!one.code || !is_xml_character(*one.code)) return "";
  switch (*one.code) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\t':
      return "&#9;";
    case '\n':
      return "&#10;";
    case '\r':
      return "&#13;";
    default:
      return shown_code(one);
  }
}

std::string each_code(std::string_view text, std::string (*made)(const Decoded&)) {
  std::string all;
  all.reserve(text.size());
  while (!text.empty()) {
    const Decoded one = decode(text);
    all += made(one);
    text.remove_prefix(one.bytes.size());
  }
  return all;
}

}  // namespace

std::string shown(std::string_view text) { return each_code(text, shown_code); }

std::string shown_lines(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = shown(text.substr(0, end));
    // A CI takes a line for its command that begins so, also after blanks.
    if (const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
        line.compare(begin, 2, "::") == 0 || line.compare(begin, 2, "##") == 0)
      line.insert(begin + 1, " ");
    all += line;
    if (end < text.size()) all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string xml_text(std::string_view text) { return each_code(text, xml_code); }

std::string markdown_text(std::string_view text) {
  static constexpr std::string_view kMarkup = "\\`*_~|[]";
  std::string all;
  for (const char c : shown(text)) {
    if (kMarkup.find(c) != kMarkup.npos) all += '\\';
    if (c == '&')
      all += "&amp;";
    else if (c == '<')
      all += "&lt;";
    else if (c == '>')
      all += "&gt;";
    else
      all += c;
  }
  return all;
}

Json shown_record(const Json& record) {
  if (record.is_string()) return shown(record.get_ref<const std::string&>());
  if (record.is_array()) {
    Json all = Json::array();
    for (const Json& one : record) all.push_back(shown_record(one));
    return all;
  }
  if (!record.is_object()) return record;
  Json all = Json::object();
  for (const auto& [key, value] : record.items()) {
    std::string name = shown(key);
    while (all.contains(name)) name += kReplacement;
    all[name] = shown_record(value);
  }
  return all;
}

std::string kernels_words(const Json& record) {
  Json kernels = record.value("kernels", Json());
  if (!kernels.is_string() && record.contains("config"))
    kernels = record["config"].value(Json::json_pointer("/kernels/value"), Json());
  return kernels.is_string() ? ", " + shown(kernels.get<std::string>()) + " kernels" : "";
}

std::string kernels_words(const record::Settings& config) {
  const Json kernels = setting(config, "kernels");
  return kernels.is_string() ? ", " + shown(kernels.get<std::string>()) + " kernels" : "";
}

namespace {

constexpr std::size_t kColumns = 100;

std::string indented(const std::string& begin, const std::string& text) {
  return "  " + wrapped(begin + shown(text), kColumns - 2, 7);
}

/// Returns text like "The link: ranks wait for gradients. (likely)".
std::string what_is_found(const record::Finding& finding) {
  return fmt::format("{} ({})", finding.what, finding.sure == "hint" ? "a hint" : finding.sure);
}

std::string lines_of_finding(const record::Finding& finding) {
  std::string lines = wrapped(shown(what_is_found(finding)), kColumns, 2);
  if (!finding.why.empty()) lines += indented("why: ", finding.why);
  for (const std::string& one : finding.tries) lines += indented("try: ", one);
  return lines;
}

/// Returns the findings of a record. What a record lacks of a finding is empty.
std::vector<record::Finding> findings_of(const Json& record) {
  std::vector<record::Finding> findings;
  const auto found = record.find("findings");
  if (found == record.end() || !found->is_array()) return findings;
  for (const Json& finding : *found)
    findings.push_back(part_from<record::Finding>(finding, Json::object(), 0));
  return findings;
}

bool is_told(const record::Finding& finding, const std::string& told) {
  return (" " + told + " ").find(" " + finding.rule + " ") != told.npos;
}

}  // namespace

std::string finding_lines(const std::vector<record::Finding>& findings, const std::string& told) {
  std::string lines;
  for (const record::Finding& finding : findings)
    if (!is_told(finding, told)) lines += lines_of_finding(finding);
  return lines;
}

std::string finding_lines(const Json& record, const std::string& told) {
  return finding_lines(findings_of(record), told);
}

std::vector<std::string> finding_sentences(const std::vector<record::Finding>& findings,
                                           const std::string& told) {
  std::vector<std::string> sentences;
  for (const record::Finding& finding : findings)
    if (!is_told(finding, told)) sentences.push_back(what_is_found(finding) + " " + finding.why);
  return sentences;
}

}  // namespace scalemark
