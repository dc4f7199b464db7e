// --embedding_gradients and --tied_gradient: where they have a meaning, and what a refusal says.
#include "config_support.hpp"

namespace scalemark::embedding_keys_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Words sequence(Words more) {
  more.insert(more.begin(), {"--model", "transformer_tiny"});
  return more;
}

TEST(EmbeddingKeys, AreDenseByDefaultAndTakeEveryStrategyOfASequenceModel) {
  EXPECT_EQ(load({}).config.embedding_gradients, EmbeddingGradients::dense);
  EXPECT_EQ(load(sequence({"--embedding_gradients", "sparse"})).config.tied_gradient,
            TiedGradient::dense);
  EXPECT_EQ(load(sequence({"--embedding_gradients=sparse", "--tied_gradient=sparse"}))
                .config.tied_gradient,
            TiedGradient::sparse);
  EXPECT_EQ(load(sequence({"--embedding_gradients=sparse_as_dense", "--wire_dtype=bf16"}))
                .config.embedding_gradients,
            EmbeddingGradients::sparse_as_dense);
}

TEST(EmbeddingKeys, AreRefusedWithTheRemedy) {
  EXPECT_THAT(refused({"--embedding_gradients", "sparse"}),
              AllOf(HasSubstr("resnet50 has no embedding table"), HasSubstr("transformer_base")));
  EXPECT_THAT(refused(sequence({"--tied_gradient", "sparse"})),
              HasSubstr("add --embedding_gradients sparse"));
  EXPECT_THAT(refused(sequence({"--embedding_gradients", "sparse", "--forward_only"})),
              HasSubstr("no gradients"));
  EXPECT_THAT(refused(sequence({"--embedding_gradients", "sparse", "--wire_dtype", "bf16"})),
              AllOf(HasSubstr("--wire_dtype fp32"), HasSubstr("sparse_as_dense")));
  EXPECT_THAT(refused(sequence({"--embedding_gradients", "sparse", "--reducer", "c10d"})),
              HasSubstr("--reducer scalemark"));
  EXPECT_THAT(refused(sequence({"--embedding_gradients", "rows"})),
              HasSubstr("dense, sparse, sparse_as_dense"));
}

}  // namespace
}  // namespace scalemark::embedding_keys_test
