// See log_tail.hpp.
#include "launch/log_tail.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "launch/boilerplate.hpp"

namespace scalemark {

std::string last_lines(const std::filesystem::path& log) {
  std::vector<std::string> lines;
  std::ifstream file(log);
  Boilerplate boilerplate;
  std::string said;
  for (std::string line; std::getline(file, line);) said += boilerplate.pass(line + "\n");
  std::istringstream rest(said + boilerplate.rest());
  for (std::string line; std::getline(rest, line);)
    if (line.find_first_not_of(" \t\r-") != line.npos) lines.push_back(line);
  std::string text;
  for (std::size_t i = lines.size() - std::min<std::size_t>(3, lines.size()); i < lines.size(); ++i)
    text += (text.empty() ? "" : " | ") + lines[i];
  return text.size() > 600 ? "..." + text.substr(text.size() - 600) : text;
}

}  // namespace scalemark
