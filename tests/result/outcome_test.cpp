// Status and exit code, and that the documents name every code and every kind of record.
#include "result/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "result/envelope.hpp"
#include "result/record_kinds.hpp"
#include "result/support.hpp"

namespace scalemark::outcome_test {
namespace {

const std::filesystem::path kDocuments = std::filesystem::path(SCALEMARK_SOURCE_DIR) / "docs";

TEST(Status, OfEveryExitCode) {
  EXPECT_EQ(status_of_exit(0), Status::ok);
  EXPECT_EQ(status_of_exit(4), Status::failed);
  EXPECT_EQ(status_of_exit(5), Status::timeout);
  for (int code : {2, 6, 7, 137, 255}) EXPECT_EQ(status_of_exit(code), Status::failed) << code;
  for (int verdict : {1, 3}) EXPECT_EQ(status_of_exit(verdict), Status::ok) << verdict;
  EXPECT_EQ(status_of_launch(ExitCode::failed, true), Status::interrupted);
  EXPECT_EQ(status_of_launch(ExitCode::timeout, false), Status::timeout);
}

TEST(Status, LeadsToTheExitCodeOfTheCommand) {
  EXPECT_EQ(exit_code_of(Status::ok), ExitCode::ok);
  EXPECT_EQ(exit_code_of(Status::timeout), ExitCode::timeout);
  for (const Status status : {Status::invalid, Status::failed, Status::interrupted})
    EXPECT_EQ(exit_code_of(status), ExitCode::failed);
}

TEST(Status, ItsWordsComeBack) {
  for (const Status status :
       {Status::ok, Status::invalid, Status::failed, Status::interrupted, Status::timeout})
    EXPECT_EQ(envelope_of(envelope("run", status)).status, status);
  EXPECT_EQ(status_from("surprise"), Status::failed);
}

TEST(ExitCodes, AreThoseOfTheDocument) {
  const std::string document = test::contents(kDocuments / "faults.md");
  std::set<int> documented, known;
  const std::regex row("\\n\\| ([0-9]+) \\| [^\\n]+ \\|");
  for (std::sregex_iterator it(document.begin(), document.end(), row), end; it != end; ++it)
    documented.insert(std::stoi((*it)[1]));
  std::string precedence;
  for (const auto& [code, words, of_gate] : kExitCodes) {
    EXPECT_TRUE(known.insert(static_cast<int>(code)).second) << words;
    if (!of_gate && code != ExitCode::ok)
      precedence += (precedence.empty() ? "" : ", ") + std::to_string(static_cast<int>(code));
  }
  EXPECT_EQ(documented, known);
  EXPECT_EQ(*known.rbegin() + 1, std::ssize(known)) << "codes without a gap";
  EXPECT_THAT(document, testing::HasSubstr("precedence is " + precedence + "."));
}

TEST(Kinds, AreThoseOfTheDocument) {
  const std::string document = test::contents(kDocuments / "records.md");
  const std::size_t begin = document.find("\n| `kind` | ") + 12;
  ASSERT_GT(begin, 12U);
  const std::string row = document.substr(begin, document.find('\n', begin) - begin);
  std::set<std::string> documented;
  const std::regex word("`([a-z]+)`");
  for (std::sregex_iterator it(row.begin(), row.end(), word), end; it != end; ++it)
    documented.insert((*it)[1]);
  const auto& kinds = record_kinds();
  EXPECT_EQ(documented, std::set<std::string>(kinds.begin(), kinds.end()));
  EXPECT_GE(kinds.size(), 10U);
}

}  // namespace
}  // namespace scalemark::outcome_test
