// src/json.hpp: what JSON is to us whatever release it is of.
#include "json.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace scalemark {
namespace {

/// GCC takes all elements of arrays and vectors for equal before nlohmann/json 3.11.
TEST(Json, IsOrderedInArraysAndVectors) {
  EXPECT_LT(Json::array({1, 2}), Json::array({1, 3}));
  EXPECT_LT((std::vector<Json>{"a", "b"}), (std::vector<Json>{"a", "c"}));
  EXPECT_EQ(Json::array({1, 2}), Json::array({1, 2}));
  EXPECT_NE((std::vector<Json>{1, 2}), (std::vector<Json>{1, 3}));
}

}  // namespace
}  // namespace scalemark
