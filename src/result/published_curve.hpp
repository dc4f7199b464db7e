// Scaling curves that others have published, as small JSON files (configs/published/): what was
// measured, where it is written, and what of the set-up is known.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "record/describe.hpp"

namespace scalemark {

struct PublishedCurve {
  std::string kind = "published_curve";
  std::string description;
  std::string source;  ///< where the figures stand
  std::string model, unit;
  Scaling scaling = Scaling::weak;
  double parameters = 0;  ///< trainable
  double bytes_per_gradient = 4;
  double units_per_sample = 1;  ///< of tokens/sec the tokens of a sequence
  std::string overlap = "backward";
  double bucket_mb = 25;  ///< MiB
  std::optional<std::int64_t> ranks_per_node;
  std::optional<double> link_gbit;  ///< nominal, of a node
  struct Point {
    std::int64_t ranks = 1;
    double batch_size_per_rank = 1;
    double throughput = 1;  ///< units/sec of all ranks
    static void describe(Fields& fields);
  };
  std::vector<Point> points;  ///< ascending ranks
  static void describe(Fields& fields);
};

/// True where the path is a small regular file of JSON that says to be one.
bool is_published_curve(const std::filesystem::path& path);

/// ResultError where the file is not as docs/schema/published_curve.schema.json says, naming the
/// place; ConfigError where it has a key that is unknown or a unit outside the list.
PublishedCurve read_published_curve(const std::filesystem::path& path);

/// Parses the text of a published curve; `path` is where it came from.
PublishedCurve parse_published_curve(std::string_view text, const std::filesystem::path& path);

}  // namespace scalemark
