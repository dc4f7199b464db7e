// The schema and the documentation say what the key table says. UPDATE_DOCS=1 writes them.
#include "config/key_docs.hpp"

#include <cstdlib>
#include <set>
#include <sstream>

#include "config/keys.hpp"
#include "config_support.hpp"

namespace scalemark::key_docs_test {
namespace {

const std::string kSchema = SCALEMARK_SOURCE_DIR "/docs/schema/config.schema.json";
const std::string kPage = SCALEMARK_SOURCE_DIR "/docs/configuration.md";

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Compares a file with what it should hold, or writes it where UPDATE_DOCS is set.
void expect_file(const std::string& path, const std::string& text) {
  if (std::getenv("UPDATE_DOCS")) std::ofstream(path) << text;
  EXPECT_EQ(read(path), text)
      << path << " is out of date: UPDATE_DOCS=1 ctest --test-dir build/dev -R config writes it";
}

TEST(KeyTable, NamesAreUniqueAndEveryKeyIsDescribed) {
  std::set<std::string> names;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_EQ(key.value_name.empty(), key.kind == Kind::boolean) << key.name;
    EXPECT_EQ(key.get(RunConfig{}).is_null(), !key.unset.empty()) << key.name;
    if (key.kind == Kind::integer || key.kind == Kind::real) {
      EXPECT_LT(key.lowest, key.highest) << key.name;
    }
  }
}

/// A new key is its row: no list elsewhere has to be extended. What the room itself does with keys
/// concerns the batch, the launch and the plan of a sweep (that of a curve's baselines, too).
TEST(KeyTable, AKeyIsNamedInItsRowAlone) {
  std::set<std::string> spelled;
  for (const auto& entry :
       std::filesystem::directory_iterator(SCALEMARK_SOURCE_DIR "/src/config")) {
    const std::string source = entry.is_directory() ? "" : read(entry.path());
    for (const Key& key : all_keys())
      if (source.find('"' + key.name + '"') != source.npos) spelled.insert(key.name);
  }
  EXPECT_EQ(spelled, (std::set<std::string>{"base_batch_size", "batch_size", "communicator",
                                            "container", "container_program", "container_runtime",
                                            "global_batch_size", "global_batch_tokens", "hostfile",
                                            "launcher", "micro_batch_size", "precision", "ranks",
                                            "ranks_per_node", "reducer", "repeats", "seed"}));
}

TEST(KeyDocs, TheSchemaIsThatOfTheTable) { expect_file(kSchema, config_schema().dump(2) + "\n"); }

TEST(KeyDocs, ThePageHoldsTheTables) {
  const std::string page = read(kPage), end = "<!-- end of keys -->";
  const std::size_t from = page.find('\n', page.find("<!-- keys:")), to = page.find(end);
  ASSERT_NE(to, page.npos);
  expect_file(kPage, page.substr(0, from + 1) + key_tables() + "\n" + page.substr(to));
}

}  // namespace
}  // namespace scalemark::key_docs_test
