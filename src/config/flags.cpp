// Prints the help of flags and reads command lines by the same table.
#include "config/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cxxopts.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "config/keys.hpp"
#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kTextColumn = 28;  // where the text beside a flag begins

/// Returns a text such as "--model NAME".
std::string shown_flag(const FlagHelp& flag) {
  return (flag.letter ? fmt::format("-{}, ", flag.letter) : "") + "--" + flag.name +
         (flag.value_name.empty() ? "" : " " + flag.value_name);
}

std::string in_parentheses(const FlagHelp& flag, bool with_words) {
  std::string text = with_words ? join(flag.words, ", ") : "";
  if (!flag.standard.empty()) text += (text.empty() ? "default: " : "; default: ") + flag.standard;
  return text.empty() ? "" : " (" + text + ")";
}

/// Returns one line, where that is wide enough: as much of the words and of the default as fits.
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

namespace {

std::int64_t whole_of(const std::string& name, const std::string& word, std::int64_t low,
                      std::int64_t high) {
  const auto number = parse_integer(word);
  if (!number || *number < low || *number > high)
    throw ConfigError(
        fmt::format("--{}: {} is not a whole number from {} to {}", name, quote(word), low, high));
  return *number;
}

/// Returns the message with dashes. cxxopts writes Option ‘pairs’, in quotes of some kind, where
/// its user wrote --pairs.
std::string with_dashes(const std::string& message) {
  constexpr std::string_view kOption = "Option ";
  if (!message.starts_with(kOption)) return message;
  const auto is_of_a_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  const auto begin = std::find_if(message.begin() + kOption.size(), message.end(), is_of_a_name);
  const auto end = std::find_if_not(begin, message.end(), is_of_a_name);
  return "--" + std::string(begin, end) +
         std::string(std::find(end, message.end(), ' '), message.end());
}

/// Returns the words in the form that cxxopts expects. It matches a regular expression against
/// words that contain a `=`, so a value that is a separate word stays one.
std::vector<std::string> canonical_words(const CommandHelp& help,
                                         std::span<const std::string> arguments) {
  std::vector<std::string> words;
  for (const GivenWord& given : read_words(arguments, takes_value_in(help))) {
    if (given.name.empty()) {
      words.push_back(given.written.front());
      continue;
    }
    const bool joined = given.value && given.written.size() == 1;
    words.push_back("--" + given.name + (joined ? "=" + *given.value : ""));
    if (given.written.size() == 2) words.push_back(*given.value);
  }
  return words;
}

cxxopts::Options options_of(const CommandHelp& help, const std::string& positional) {
  cxxopts::Options options("scalemark " + help.name);
  for (const FlagGroup& group : help.groups)
    for (const FlagHelp& flag : group.flags) {
      const std::string name = (flag.letter ? std::string{flag.letter, ','} : "") + flag.name;
      if (flag.value_name.empty())
        options.add_options()(name, "");
      else if (flag.repeated)
        options.add_options()(name, "", cxxopts::value<std::vector<std::string>>());
      else
        options.add_options()(name, "", cxxopts::value<std::string>());
    }
  if (!positional.empty()) {
    options.add_options()(positional, "", cxxopts::value<std::vector<std::string>>());
    options.parse_positional({positional});
  }
  return options;
}

std::map<std::string, std::vector<std::string>> parse_words(
    const CommandHelp& help, const std::string& positional,
    std::span<const std::string> arguments) {
  std::string program = "scalemark " + help.name;
  std::vector<std::string> words = canonical_words(help, arguments);
  std::vector<char*> argv{program.data()};  // cxxopts 2 wants them mutable
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  char** begin = argv.data();
  std::map<std::string, std::vector<std::string>> given;
  try {
    const auto parsed = options_of(help, positional).parse(argc, begin);
    for (const auto& one : parsed.arguments()) given[one.key()].push_back(one.value());
  } catch (const std::exception& error) {  // cxxopts 2 and 3 have different exception classes
    throw ConfigError(fmt::format("{0}: {1}; see {0} --help", program, with_dashes(error.what())));
  }
  return given;
}

}  // namespace

std::vector<GivenWord> read_words(std::span<const std::string> arguments,
                                  const TakesValue& takes_value) {
  std::vector<GivenWord> all;
  bool flags_end = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    GivenWord& given = all.emplace_back();
    given.written = {word};
    flags_end = flags_end || word == "--";
    if (flags_end || !word.starts_with("--")) continue;
    const std::size_t equals = word.find('=');
    given.name = canonical_name(word.substr(2, equals == word.npos ? equals : equals - 2));
    if (equals != word.npos) {
      given.value = word.substr(equals + 1);
    } else if (takes_value(given.name) && i + 1 < arguments.size()) {
      given.value = arguments[++i];
      given.written.push_back(*given.value);
    }
  }
  return all;
}

TakesValue takes_value_in(const CommandHelp& help) {
  std::set<std::string> names;
  for (const FlagGroup& group : help.groups)
    for (const FlagHelp& flag : group.flags)
      if (!flag.value_name.empty()) names.insert(flag.name);
  return [names](const std::string& name) { return names.contains(name); };
}

std::vector<std::string> split_list(const std::string& text, const std::string& flag) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    if (words.back().empty())
      throw ConfigError(fmt::format("{}: {} has an empty word", flag, quote(text)));
    begin = end + 1;
  }
  return words;
}

std::string key_name(const std::string& word) {
  return word.starts_with("env.") ? word : current_name(canonical_name(word));
}

void check_choice(const std::string& flag, const std::string& word,
                  const std::vector<std::string>& legal) {
  if (std::ranges::find(legal, word) == legal.end())
    throw ConfigError(fmt::format("{}: {} is none{}; legal: {}", flag, quote(word),
                                  did_you_mean(word, legal), join(legal, ", ")));
}

FlagReader::FlagReader(const CommandHelp& help, const std::string& positional,
                       std::span<const std::string> arguments)
    : given_(parse_words(help, positional, arguments)) {}

std::optional<std::string> FlagReader::text(const std::string& name) const {
  if (!has(name)) return std::nullopt;
  const std::string& word = given_.at(name).back();
  check_text(word, "--" + name);
  return word;
}

std::vector<std::string> FlagReader::texts(const std::string& name) const {
  return checked(name, "--" + name);
}

std::vector<std::string> FlagReader::positionals(const std::string& name) const {
  return checked(name, name);
}

std::vector<std::string> FlagReader::checked(const std::string& name,
                                             const std::string& place) const {
  if (!has(name)) return {};
  const std::vector<std::string>& words = given_.at(name);
  for (const std::string& word : words) check_text(word, place);
  return words;
}

std::optional<double> FlagReader::number(const std::string& name, double low, double high) const {
  const auto word = text(name);
  if (!word) return std::nullopt;
  const auto number = parse_real(*word);
  if (!number || !(*number >= low) || !(*number <= high))
    throw ConfigError(
        fmt::format("--{}: {} is not a number from {} to {}", name, quote(*word), low, high));
  return number;
}

std::optional<double> FlagReader::positive(const std::string& name) const {
  const auto word = text(name);
  if (!word) return std::nullopt;
  const auto number = parse_real(*word);
  if (!number || *number <= 0)
    throw ConfigError(fmt::format("--{}: {} is not a number above 0", name, quote(*word)));
  return number;
}

std::optional<std::int64_t> FlagReader::whole(const std::string& name, std::int64_t low,
                                              std::int64_t high) const {
  const auto word = text(name);
  return word ? std::optional(whole_of(name, *word, low, high)) : std::nullopt;
}

std::vector<std::int64_t> FlagReader::wholes(const std::string& name, std::int64_t low,
                                             std::int64_t high) const {
  const auto words = text(name);
  if (!words) return {};
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split_list(*words, "--" + name))
    numbers.push_back(whole_of(name, word, low, high));
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::string> FlagReader::keys(const std::string& name) const {
  const auto words = text(name);
  std::vector<std::string> keys;
  if (words) keys = split_list(*words, "--" + name);
  for (std::string& key : keys) key = key_name(key);
  return keys;
}

}  // namespace scalemark
