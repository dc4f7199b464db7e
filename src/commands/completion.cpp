// Implements `scalemark completion SHELL`: it prints what a shell sources to complete subcommands,
// flags and the words of choices, printed from the tables of the program.
#include <fmt/format.h>

#include <map>
#include <set>

#include "commands/list.hpp"
#include "commands/subcommands.hpp"
#include "config/flags.hpp"
#include "config/text.hpp"
#include "streams.hpp"

namespace scalemark {
namespace {

/// Returns the words that may follow a subcommand, except for flags.
std::vector<std::string> words_after(std::string_view subcommand) {
  if (subcommand == "list") return kLists;
  if (subcommand == "completion") return {"bash", "zsh", "fish"};
  return {};
}

/// Returns each flag once, including --help, which every subcommand has.
std::vector<FlagHelp> flags_of(const Subcommand& subcommand) {
  std::vector<FlagHelp> flags{
      {.name = "help", .value_name = "", .text = "help; with all: every flag"}};
  for (const FlagGroup& group : whole_help(subcommand, {}).groups)
    flags.insert(flags.end(), group.flags.begin(), group.flags.end());
  return flags;
}

std::string subcommand_names() {
  std::vector<std::string> names{"help"};
  for (const Subcommand& subcommand : kSubcommands) names.emplace_back(subcommand.name);
  return join(names, " ");
}

bool names_a_file(const FlagHelp& flag) {
  const std::set<std::string> files{"FILE", "DIR", "PATH", "BUILD"};
  return files.contains(flag.value_name);
}

/// Returns what the shells show beside a flag: the part before the first ';'.
std::string brief(const FlagHelp& flag) { return flag.text.substr(0, flag.text.find(';')); }

/// Returns the text with a backslash before each character of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != special.npos) result += '\\';
    result += c;
  }
  return result;
}

/// Returns the text within single quotes of a POSIX shell.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

void append_pattern(std::string& patterns, const std::string& pattern) {
  patterns += (patterns.empty() ? "" : "|") + pattern;
}

std::string bash() {
  std::string flags, switches;
  std::map<std::string, std::string> choices;  // patterns such as run--precision, by legal words
  for (const Subcommand& subcommand : kSubcommands) {
    std::string names;
    for (const FlagHelp& flag : flags_of(subcommand)) {
      const std::string pattern = fmt::format("{}--{}", subcommand.name, flag.name);
      names += "--" + flag.name + " ";
      if (flag.value_name.empty())
        append_pattern(switches, pattern);
      else if (!names_a_file(flag))
        append_pattern(choices[join(flag.words, " ")], pattern);
    }
    flags += fmt::format("    {}) flags='{}' words='{}' ;;\n", subcommand.name, names,
                         join(words_after(subcommand.name), " "));
  }
  std::string cases;
  for (const auto& [words, patterns] : choices)
    cases += fmt::format("    {}) kind=choice words='{}' ;;\n", patterns, words);
  return fmt::format(R"(# Completion of scalemark for bash: source it, or install it as
# share/bash-completion/completions/scalemark. Made by `scalemark completion bash`.
# shellcheck disable=SC2207,SC2209  # words of the program, none of which has a blank
_scalemark() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} flags='' words='' kind=positional
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{0} --help --version' -- "$current"))
    return
  fi
  # --flag=value is three words here.
  if [[ $current == = ]]; then current=''; elif [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  if [[ $current == --* ]]; then current=${{current//-/_}} current=${{current/#__/--}}; fi
  previous=${{previous//-/_}} previous=${{previous/#__/--}}
  case $command in
    help) words='{0} --man' ;;
{1}  esac
  case $command$previous in
    {2}) ;;
{3}    *--*) kind=file ;;
  esac
  if [[ $kind != choice && $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ $kind != file ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
  [[ ${{#COMPREPLY[@]}} -gt 0 || $kind == choice || $current == -* ]] || compopt -o default 2>/dev/null
}}
complete -F _scalemark scalemark ./scalemark
)",
                     subcommand_names(), flags, switches, cases);
}

/// Returns a specification for zsh, such as '--model=[network]:NAME:(resnet18 resnet50)'.
std::string zsh_flag(const FlagHelp& flag) {
  const std::string head =
      fmt::format("{}--{}{}[{}]", flag.repeated ? "*" : "", flag.name,
                  flag.value_name.empty() ? "" : "=", escaped(brief(flag), "[]:\\"));
  if (flag.value_name.empty()) return single_quoted(head);
  const std::string action = !flag.words.empty()  ? "(" + join(flag.words, " ") + ")"
                             : names_a_file(flag) ? "_files"
                                                  : " ";
  return single_quoted(fmt::format("{}:{}:{}", head, escaped(flag.value_name, ":\\"), action));
}

std::string zsh() {
  std::string commands, cases;
  for (const Subcommand& subcommand : kSubcommands) {
    commands += fmt::format(
        "      {}\n",
        single_quoted(fmt::format("{}:{}", subcommand.name, escaped(subcommand.purpose, ":\\"))));
    cases += fmt::format("    {})\n      _arguments", subcommand.name);
    for (const FlagHelp& flag : flags_of(subcommand)) cases += " \\\n        " + zsh_flag(flag);
    const std::string words = join(words_after(subcommand.name), " ");
    cases += fmt::format(" \\\n        '*:argument:{}'\n      ;;\n",
                         words.empty() ? "_files" : "(" + words + ")");
  }
  return fmt::format(R"(#compdef scalemark
# Completion of scalemark for zsh: a file _scalemark in a folder of $fpath, such as
# share/zsh/site-functions. Made by `scalemark completion zsh`.
_scalemark() {{
  local -a commands
  if ((CURRENT == 2)); then
    commands=(
      'help:help of a subcommand'
{0})
    _describe 'subcommand' commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
    help)
      _arguments '*:subcommand:({1})'
      ;;
{2}  esac
}}
if [[ $funcstack[1] == _scalemark ]]; then _scalemark "$@"; else compdef _scalemark scalemark; fi
)",
                     commands, subcommand_names(), cases);
}

std::string fish() {
  std::string text =
      R"(# Completion of scalemark for fish: scalemark.fish in share/fish/vendor_completions.d.
# Made by `scalemark completion fish`.
complete -c scalemark -n __fish_use_subcommand -f -l version -d 'what it was built with'
complete -c scalemark -n __fish_use_subcommand -f -a help -d 'help of a subcommand'
)";
  const auto fish_quoted = [](std::string_view words) { return "'" + escaped(words, "'\\") + "'"; };
  for (const Subcommand& subcommand : kSubcommands) {
    text += fmt::format("complete -c scalemark -n __fish_use_subcommand -f -a {} -d {}\n",
                        subcommand.name, fish_quoted(subcommand.purpose));
    const std::string of =
        fmt::format("complete -c scalemark -n '__fish_seen_subcommand_from {}'", subcommand.name);
    if (const auto words = words_after(subcommand.name); !words.empty())
      text += fmt::format("{} -f -a {}\n", of, fish_quoted(join(words, " ")));
    for (const FlagHelp& flag : flags_of(subcommand)) {
      const std::string value = flag.value_name.empty() ? ""
                                : !flag.words.empty()
                                    ? " -x -a " + fish_quoted(join(flag.words, " "))
                                : names_a_file(flag) ? " -r -F"
                                                     : " -x";
      text += fmt::format("{} -l {}{} -d {}\n", of, flag.name, value, fish_quoted(brief(flag)));
    }
  }
  return text +
         fmt::format("complete -c scalemark -n '__fish_seen_subcommand_from help' -f -a {}\n",
                     fish_quoted(subcommand_names()));
}

}  // namespace

CommandHelp commands::completion_help(const CommandLine&) {
  return {"completion",
          "Prints what a shell sources to complete subcommands, flags and the words of choices.",
          {"bash|zsh|fish"},
          {},
          {"source <(scalemark completion bash)", "source <(scalemark completion zsh)",
           "scalemark completion fish | source"},
          "cmake --install puts all three under share/.\nExit codes: 0 ok, 2 usage.\n"};
}

ExitCode commands::completion(const CommandLine& line) {
  const std::map<std::string, std::string (*)()> shells{
      {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
  if (line.arguments.size() != 1)
    throw ConfigError("scalemark completion takes one shell: bash, zsh or fish");
  check_choice("scalemark completion", line.arguments.front(), {"bash", "zsh", "fish"});
  print_data(shells.at(line.arguments.front())());
  return ExitCode::ok;
}

}  // namespace scalemark
