// Keys of a server, of int8 and of checkpoints' storage: what goes with what.
#include "config/load.hpp"
#include "config_support.hpp"

namespace scalemark::serving_keys_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Infer, AServerHasARateOrABoundToSearchOneFor) {
  const auto server = [](Words words) {
    words.insert(words.begin(), {"--mode", "server"});
    return words;
  };
  const auto loaded = load(server({"--arrival_rate=20"}), {}, Command::infer).config;
  EXPECT_EQ(loaded.batch_size, 1);
  EXPECT_EQ(loaded.min_query_count, 1000);
  EXPECT_FALSE(loaded.searches_rate());
  const auto searching = load(server({"--latency_bound_ms=50", "--latency_quantile=0.9",
                                      "--batch_size=4", "--max_queue_delay_ms=2"}),
                              {}, Command::infer)
                             .config;
  EXPECT_EQ(searching.min_query_count, 100);
  EXPECT_TRUE(searching.searches_rate());
  const auto refuses = [&](Words words) { return refused(words, {}, Command::infer); };
  EXPECT_THAT(refuses(server({})),
              AllOf(HasSubstr("--arrival_rate"), HasSubstr("--latency_bound")));
  EXPECT_THAT(refuses(server({"--latency_bound_ms=50", "--min_query_count=999"})),
              AllOf(HasSubstr("999"), HasSubstr("1000")));
  EXPECT_NO_THROW(load(server({"--arrival_rate=20", "--min_query_count=9"}), {}, Command::infer));
  EXPECT_THAT(refuses(server({"--arrival_rate=20", "--batch_size=max"})), HasSubstr("max"));
  EXPECT_THAT(refuses(server({"--arrival_rate=20", "--max_queue_delay_ms=5"})),
              HasSubstr("--batch_size"));
  for (const char* flag : {"--max_seconds=1", "--target_ci=0.1", "--window_seconds=1"})
    EXPECT_THAT(refuses(server({"--arrival_rate=20", flag})), HasSubstr("--min_duration"));
  EXPECT_THAT(refuses({"--arrival_rate=20"}), HasSubstr("--mode server"));
}

TEST(Refusals, Int8IsOfInferenceAlone) {
  EXPECT_EQ(load({"--precision=int8"}, {}, Command::infer).config.precision, Precision::int8);
  EXPECT_THAT(refused({"--precision=int8"}), HasSubstr("scalemark infer"));
  EXPECT_THAT(refusal([] { load_scale({"--precision=fp32,int8"}); }), HasSubstr("scalemark infer"));
}

TEST(Refusals, StorageIsOfCheckpoints) {
  EXPECT_THAT(refused({"--storage_gbit=20"}), HasSubstr("--checkpoint_every N"));
  EXPECT_THAT(refused({"--checkpoint_every=5", "--storage_node_gbit=20"}),
              HasSubstr("--storage_gbit"));
}

}  // namespace
}  // namespace scalemark::serving_keys_test
