// JSON files: limits, places in messages, and that nothing crashes on hostile ones.
#include <random>

#include "config/keys.hpp"
#include "config/load.hpp"
#include "config_support.hpp"

namespace scalemark::file_layer_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refused_text(const std::string& text) {
  return refusal([&] { parse_config_text(text, "run.json"); });
}

TEST(File, SyntaxErrorsNameLineAndColumn) {
  EXPECT_THAT(refused_text("{\"seed\": 1,\n  oops}"),
              AllOf(HasSubstr("run.json"), HasSubstr("line 2, column 3")));
  for (const char* bad : {"", "{", "{\"seed\": 1", "{\"seed\": 01}", "{'seed': 1}",
                          "{\"seed\": 1} x", "\xff\xfe", "{\"seed\": 1e999}", "{\"seed\": NaN}"})
    EXPECT_THAT(refused_text(bad), HasSubstr("run.json")) << bad;
}

TEST(File, MustBeAnObject) {
  for (const char* bad : {"[]", "1", "null", "\"x\""})
    EXPECT_THAT(refused_text(bad), HasSubstr("one JSON object")) << bad;
}

TEST(File, ValuesHaveTheirPlaceAndRange) {
  EXPECT_THAT(refused_text(R"({"seed": "7"})"),
              AllOf(HasSubstr("run.json: /seed"), HasSubstr("whole number")));
  EXPECT_THAT(refused_text(R"({"seed": 7.5})"), HasSubstr("/seed"));
  EXPECT_THAT(refused_text(R"({"seed": 1e30})"), HasSubstr("out of range"));
  EXPECT_THAT(refused_text(R"({"seed": 18446744073709551615})"), HasSubstr("out of range"));
  EXPECT_THAT(refused_text(R"({"seed": null})"), HasSubstr("/seed"));
  EXPECT_THAT(refused_text(R"({"json": 1})"), HasSubstr("true or false"));
  EXPECT_THAT(refused_text(R"({"optimizer": ["sgd"]})"), HasSubstr("/optimizer: an array"));
  EXPECT_THAT(refused_text(R"({"ranks": [1, "2"]})"), HasSubstr("/ranks/1"));
  EXPECT_THAT(refused_text(R"({"ranks": []})"), HasSubstr("/ranks"));
  EXPECT_THAT(refused_text(R"({"label": "a\u0000b"})"), HasSubstr("control characters"));
  EXPECT_TRUE(parse_config_text(R"({"batch_size": null})", "run.json")["batch_size"].is_null());
}

TEST(File, UnknownKeysNameTheNearest) {
  EXPECT_THAT(refused_text(R"({"sead": 7})"),
              AllOf(HasSubstr("run.json: /sead"), HasSubstr("mean seed?")));
  EXPECT_THAT(refused_text(R"({"a/b~c": 7})"), HasSubstr("/a~1b~0c"));
  EXPECT_THAT(refused_text("{\"a\\u001b[2J\": 7}"), HasSubstr("\\u001b"));
}

TEST(File, AKeyTwiceIsRefused) {
  EXPECT_THAT(refused_text(R"({"seed": 1, "seed": 2})"), HasSubstr("twice"));
  EXPECT_THAT(refused_text(R"({"num_batches": 1, "num-batches": 2})"), HasSubstr("twice"));
}

TEST(File, DepthAndSizeHaveLimits) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_THAT(refused_text("{\"label\": " + nested(40) + "}"), HasSubstr("deeper than 32"));
  EXPECT_THAT(refused_text(nested(500000)), HasSubstr("deeper than 32"));
  EXPECT_THAT(refused_text("{\"label\": " + nested(20) + "}"), HasSubstr("/label: an array"));
  EXPECT_THAT(refused_text(std::string((1 << 20) + 1, ' ')), HasSubstr("1048576 bytes"));
}

TEST(File, PathsThatCannotBeRead) {
  EXPECT_THAT(refused({"--config", "/no/such/file.json"}), HasSubstr("no such file"));
  EXPECT_THAT(refused({"--config", "/"}), HasSubstr("a folder"));
  EXPECT_THAT(refused({"--config", "/dev/zero"}), HasSubstr("a device"));
  EXPECT_THAT(refused({"--config", ""}), HasSubstr("--config"));
  EXPECT_THAT(refused({"--config=a", "--config=b"}), HasSubstr("more than once"));
}

TEST(File, EveryShippedConfigLoads) {
  int found = 0;
  for (const char* folder : {"/configs", "/configs/examples"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(SCALEMARK_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".json" || is_plan(entry.path())) continue;
      ++found;
      for (const Command command : {Command::run, Command::scale})
        EXPECT_NO_THROW(load({"--config", entry.path().string()}, {}, command)) << entry.path();
    }
  EXPECT_GE(found, 4);
}

/// Random edits of a text: bytes changed, removed, doubled, and pieces that parsers stumble over.
std::string mutated(std::string text, std::mt19937& random) {
  static const Words pieces{"\"",
                            "{",
                            "[",
                            "}",
                            ",",
                            ":",
                            "\\u0000",
                            "1e9999",
                            "-",
                            "null",
                            "\xc3",
                            "--",
                            "=",
                            "true",
                            "99999999999999999999",
                            std::string(1, '\0'),
                            "\n",
                            "auto",
                            ":rank=",
                            "[[[[[[[["};
  for (int edits = 1 + random() % 4; edits > 0; --edits) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 4) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, random() % 5);
        break;
      case 2:
        text.insert(at, pieces[random() % pieces.size()]);
        break;
      default:
        text.insert(at, text.substr(at, random() % 20));
        break;
    }
  }
  return text;
}

/// Runs `f`; anything but success or a ConfigError with plain words fails the test.
template <typename F>
void survives(F&& f, const std::string& input) {
  try {
    f();
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    ASSERT_FALSE(message.empty());
    ASSERT_EQ(message.find('\0'), message.npos) << input;
  } catch (const std::exception& error) {
    FAIL() << "not a ConfigError: " << error.what() << "\n" << input;
  }
}

TEST(Fuzz, HostileFilesNeverCrash) {
  std::mt19937 random(20240501);
  nlohmann::ordered_json all = {{"description", "x"}};
  for (const Key& key : all_keys()) all[key.name] = key.get(RunConfig{});
  all["ranks"] = {1, 2, 4};
  all["inject"] = "delay:rank=1:milliseconds=5";
  const Words seeds{all.dump(1), R"({"model":"trivial","seed":1})",
                    R"({"ranks":[1,2],"label":"a"})"};
  for (int i = 0; i < 3000; ++i) {
    const std::string text = mutated(seeds[random() % seeds.size()], random);
    survives([&] { parse_config_text(text, "fuzz.json"); }, text);
  }
}

TEST(Fuzz, HostileCommandLinesNeverCrash) {
  std::mt19937 random(20240502);
  const Words seeds{"--num_batches=7", "--json",           "--ranks=1,2,4",
                    "--set",           "seed=4",           "--inject=delay:milliseconds=5",
                    "--nojson",        "--model",          "resnet50",
                    "--momentum=0.9",  "--scaling=strong", "--global_batch_size=64"};
  for (int i = 0; i < 2000; ++i) {
    Words arguments, environment;
    for (int n = random() % 5; n > 0; --n) {
      const std::string& seed = seeds[random() % seeds.size()];
      arguments.push_back(random() % 2 ? seed : mutated(seed, random));
    }
    if (random() % 4 == 0) environment.push_back(mutated("SCALEMARK_SEED=17", random));
    const Command command = random() % 2 ? Command::run : Command::scale;
    survives([&] { load(arguments, environment, command); }, ::testing::PrintToString(arguments));
  }
}

}  // namespace
}  // namespace scalemark::file_layer_test
