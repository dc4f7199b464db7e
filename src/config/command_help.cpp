// See command_help.hpp.
#include "config/command_help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "config/text.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kTextColumn = 28;  // where the text beside a flag begins

/// "--model NAME".
std::string shown_flag(const FlagHelp& flag) {
  return (flag.letter ? fmt::format("-{}, ", flag.letter) : "") + "--" + flag.name +
         (flag.value_name.empty() ? "" : " " + flag.value_name);
}

std::string in_parentheses(const FlagHelp& flag, bool with_words) {
  std::string text = with_words ? join(flag.words, ", ") : "";
  if (!flag.standard.empty()) text += (text.empty() ? "default: " : "; default: ") + flag.standard;
  return text.empty() ? "" : " (" + text + ")";
}

/// One line where that is wide enough: as much of the words and of the default as fits.
std::string in_a_line(const FlagHelp& flag, std::size_t indent, std::size_t columns) {
  const std::string text = flag.text.substr(0, flag.text.find(';'));
  std::string more;
  for (const bool with_words : {true, false}) {
    more = in_parentheses(flag, with_words);
    if (indent + text.size() + more.size() <= columns) break;
    more.clear();
  }
  return fmt::format("{:<{}}{}", "  " + shown_flag(flag), indent,
                     wrapped(text + more, columns, indent));
}

std::string usage(const CommandHelp& help) {
  std::string text = "Usage:\n";
  for (const std::string& words : help.usages)
    text += fmt::format("  scalemark {} {}\n", help.name, words);
  return text;
}

std::string examples(const CommandHelp& help) {
  std::string text = "\nExamples:\n";
  for (const std::string& example : help.examples) text += "  " + example + "\n";
  return text;
}

}  // namespace

HelpLength asked_help(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help=all") return HelpLength::all;
    if (arguments[i] != "--help" && arguments[i] != "-h") continue;
    const bool all = i + 1 < arguments.size() && arguments[i + 1] == "all";
    return all ? HelpLength::all : HelpLength::screen;
  }
  return HelpLength::none;
}

std::string described(const FlagHelp& flag) { return flag.text + in_parentheses(flag, true); }

std::string screen_help(const CommandHelp& help, std::size_t columns) {
  std::vector<FlagHelp> flags;
  for (const FlagGroup& group : help.groups)
    std::ranges::copy_if(group.flags, std::back_inserter(flags), &FlagHelp::often_used);
  std::size_t indent = 0;
  for (const FlagHelp& flag : flags) indent = std::max(indent, shown_flag(flag).size() + 4);
  std::string text = wrapped(help.about, columns) + usage(help) + (flags.empty() ? "" : "\n");
  for (const FlagHelp& flag : flags) text += in_a_line(flag, indent, columns);
  return text + examples(help) + fmt::format("\nEvery flag: scalemark {} --help all\n", help.name);
}

std::string grouped_flags(const std::vector<FlagGroup>& groups, std::size_t columns) {
  std::string text;
  for (const FlagGroup& group : groups) {
    text += fmt::format("\n {} options:\n", group.heading);
    for (const FlagHelp& flag : group.flags) {
      std::string line = "  " + shown_flag(flag);
      line += line.size() + 2 <= kTextColumn ? std::string(kTextColumn - line.size(), ' ')
                                             : "\n" + std::string(kTextColumn, ' ');
      text += line + wrapped(described(flag), columns, kTextColumn);
    }
  }
  return text;
}

std::string full_help(const CommandHelp& help, std::size_t columns) {
  std::string text =
      wrapped(help.about, columns) + "\n" + usage(help) + grouped_flags(help.groups, columns);
  text += examples(help) + "\n";
  std::istringstream notes(help.notes);
  for (std::string note; std::getline(notes, note);) text += wrapped(note, columns);
  return text;
}

}  // namespace scalemark
