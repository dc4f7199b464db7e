// How findings stand in a record; the table of rules in docs/report.md; values of other types.
#include "analysis/diagnosis/diagnose.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/diagnosis/rules.hpp"
#include "diagnosis_support.hpp"

namespace scalemark::diagnosis {
namespace {

Json curve_of_four() { return made_curve({made_point(1, 100), made_point(4, 240)}); }

/// The code points of a text from `begin` on, as many as `of` has.
std::string at_code_point(const std::string& text, std::size_t begin, const std::string& of) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80 && seen++ == begin) return text.substr(i, of.size());
  return "";
}

TEST(Findings, CarryEveryNumberWithItsPlace) {
  Json record = curve_of_four();
  add_findings(record);
  const Json finding = record["findings"][0];
  EXPECT_EQ(finding["rule"], "scales");
  EXPECT_EQ(finding["tone"], "bad");
  EXPECT_EQ(finding["sure"], "sure");
  const Json lost = finding["numbers"][1];
  EXPECT_EQ(lost["name"], "lost");
  EXPECT_NEAR(lost["value"].get<double>(), 0.4, 1e-12);
  EXPECT_EQ(lost["text"], "40.0 %");
  EXPECT_EQ(lost["record"], "curve");
  EXPECT_EQ(lost["pointer"], "/points/1/efficiency");
}

TEST(Findings, ValuesAreThoseAtTheirPlaces) {
  const Json record = curve_of_four();
  std::size_t compared = 0;
  for (const Json& finding : findings_json(diagnose(record)))
    for (const Json& number : finding["numbers"]) {
      const std::string pointer = number["pointer"];
      if (number["name"] != pointer.substr(pointer.rfind('/') + 1)) continue;  // computed
      EXPECT_EQ(number["value"], record.at(Json::json_pointer(pointer))) << pointer;
      ++compared;
    }
  EXPECT_GE(compared, 4U);
}

TEST(Findings, NumbersSayWhereInTheSentenceTheyStand) {
  const auto slow = with_straggler(made_run(3), 2, 0.205, "zürich-№7");
  std::size_t numbers = 0;
  for (const Json& finding : findings_json(diagnose(slow)))
    for (const Json& number : finding["numbers"]) {
      const std::string sentence = finding[number["sentence"].get<std::string>()];
      EXPECT_EQ(at_code_point(sentence, number["begin"], number["text"]), number["text"]);
      ++numbers;
    }
  EXPECT_EQ(numbers, 4U);
}

TEST(Findings, OfARecordOfNoRuleAreNone) {
  EXPECT_TRUE(diagnose(made_record("baseline", "b", Json::object())).empty());
}

/// Every value of every record of the house in turn is something else.
TEST(Findings, ValuesOfOtherTypesAreNoValues) {
  const std::vector<Json> others{nullptr, -1e308, "x", Json::array({Json::array(), nullptr}),
                                 Json{{"a", 1}}};
  std::size_t tried = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SCALEMARK_SOURCE_DIR "/results/baselines")) {
    if (entry.path().extension() != ".json" || entry.file_size() > 200'000) continue;
    Json record = Json::parse(std::ifstream(entry.path()));
    for (auto& [key, value] : record.items()) {
      const Json before = value;
      for (const Json& other : others) {
        value = other;
        EXPECT_NO_THROW(findings_json(diagnose(record)).dump()) << entry.path() << ": " << key;
        ++tried;
      }
      value = before;
    }
  }
  EXPECT_GT(tried, 1000U);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RuleTable, IsThatOfThePage) {
  const std::string path = SCALEMARK_SOURCE_DIR "/docs/report.md";
  const std::string page = text_of(path);
  std::string table = "| rule | says | when | what to try |\n| --- | --- | --- | --- |\n";
  for (const Rule& rule : all_rules())
    table += fmt::format("| `{}` | {} | {} | {} |\n", rule.name, rule.says, rule.when, rule.tries);
  const std::size_t begin = page.find("| rule | says |");
  ASSERT_NE(begin, page.npos);
  const std::size_t end = page.find("\n\n", begin) + 1;
  const std::string wanted = page.substr(0, begin) + table + page.substr(end);
  if (std::getenv("UPDATE_DOCS")) std::ofstream(path) << wanted;
  EXPECT_EQ(text_of(path), wanted)
      << "UPDATE_DOCS=1 ctest --test-dir build/dev -R analysis writes it";
}

/// The rules that the sources name are those of the table, each once.
TEST(RuleTable, HasEveryRuleOnce) {
  std::set<std::string> names;
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(names.insert(std::string(rule.name)).second) << rule.name;
  std::string tests;
  for (const char* file : {"curve_rules_test.cpp", "run_rules_test.cpp", "other_rules_test.cpp"})
    tests += text_of(std::string(SCALEMARK_SOURCE_DIR "/tests/analysis/diagnosis/") + file);
  for (const std::string& name : names)
    EXPECT_NE(tests.find('"' + name + '"'), tests.npos) << name << " has no test";
}

}  // namespace
}  // namespace scalemark::diagnosis
