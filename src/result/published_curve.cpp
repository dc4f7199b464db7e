// See published_curve.hpp.
#include "result/published_curve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "config/json_text.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Of bytes, rates and numbers of anything; beyond them sums and products are no numbers any more.
constexpr double kLeastPublished = 1e-12, kMostPublished = 1e18;

class Reader {
 public:
  Reader(const fs::path& path, Json file) : path_(path), file_(std::move(file)) {}

  PublishedCurve read() const {
    refuse_unknown(file_, kKeys, "");
    PublishedCurve curve;
    curve.description = text(file_, "description", "");
    curve.source = text(file_, "source", "");
    curve.model = text(file_, "model", "");
    curve.unit = unit();
    const auto scaling = from_string<Scaling>(text(file_, "scaling", ""));
    if (!scaling) refuse("/scaling", "is neither weak nor strong");
    curve.scaling = *scaling;
    curve.parameters = positive(file_, "parameters", "");
    curve.bytes_per_gradient = positive_or(file_, "bytes_per_gradient", 4);
    curve.units_per_sample = positive_or(file_, "units_per_sample", 1);
    curve.bucket_mb = positive_or(file_, "bucket_mb", 25);
    if (file_.contains("overlap")) curve.overlap = text(file_, "overlap", "");
    if (!from_string<Overlap>(curve.overlap)) refuse("/overlap", "is not none, backward or step");
    if (file_.contains("ranks_per_node")) curve.ranks_per_node = count(file_, "ranks_per_node", "");
    if (file_.contains("link_gbit")) curve.link_gbit = positive(file_, "link_gbit", "");
    read_points(curve);
    return curve;
  }

 private:
  static constexpr std::array<std::string_view, 14> kKeys{"kind",
                                                          "description",
                                                          "source",
                                                          "model",
                                                          "unit",
                                                          "scaling",
                                                          "parameters",
                                                          "points",
                                                          "ranks_per_node",
                                                          "link_gbit",
                                                          "overlap",
                                                          "bucket_mb",
                                                          "units_per_sample",
                                                          "bytes_per_gradient"};
  static constexpr std::array<std::string_view, 3> kPointKeys{"ranks", "batch_size_per_rank",
                                                              "throughput"};

  /// A word that nobody reads would be silently without effect.
  void refuse_unknown(const Json& object, std::span<const std::string_view> known,
                      const std::string& at) const {
    if (!object.is_object()) return;
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(known, key) == known.end())
        throw ConfigError(fmt::format("published curve {}: {}/{} is no key of it; it has {}",
                                      path_.string(), at, key, fmt::join(known, ", ")));
  }

  std::string unit() const {
    const std::string word = text(file_, "unit", "");
    for (const char* known : {"images/sec", "tokens/sec", "sequences/sec"})
      if (word == known) return word;
    throw ConfigError(
        fmt::format("published curve {}: /unit is {}; it can be images/sec, tokens/sec or "
                    "sequences/sec",
                    path_.string(), word));
  }

  [[noreturn]] void refuse(const std::string& place, const std::string& what) const {
    throw ResultError(fmt::format("published curve {}: {} {}; see docs/schema/{}", path_.string(),
                                  place, what, "published_curve.schema.json"));
  }

  const Json& member(const Json& object, const char* name, const std::string& at) const {
    if (!object.is_object() || !object.contains(name)) refuse(at + "/" + name, "is missing");
    return object[name];
  }
  std::string text(const Json& object, const char* name, const std::string& at) const {
    const Json& value = member(object, name, at);
    if (!value.is_string() || value.get<std::string>().empty())
      refuse(at + "/" + name, "is not a text");
    return value;
  }
  double positive(const Json& object, const char* name, const std::string& at) const {
    const Json& value = member(object, name, at);
    const double number = value.is_number() ? value.get<double>() : 0;
    if (!(number >= kLeastPublished && number <= kMostPublished))
      refuse(at + "/" + name, fmt::format("is not a number above 0 (from {} to {})",
                                          kLeastPublished, kMostPublished));
    return value;
  }
  double positive_or(const Json& object, const char* name, double otherwise) const {
    return object.contains(name) ? positive(object, name, "") : otherwise;
  }
  std::int64_t count(const Json& object, const char* name, const std::string& at) const {
    const Json& value = member(object, name, at);
    if (!value.is_number_integer() || value < 1 || value > 1'000'000'000)
      refuse(at + "/" + name, "is not a whole number from 1 to 1,000,000,000");
    return value;
  }

  void read_points(PublishedCurve& curve) const {
    const Json& points = member(file_, "points", "");
    if (!points.is_array()) refuse("/points", "is not a list");
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::string at = fmt::format("/points/{}", i);
      refuse_unknown(points[i], kPointKeys, at);
      curve.points.push_back({count(points[i], "ranks", at),
                              positive(points[i], "batch_size_per_rank", at),
                              positive(points[i], "throughput", at)});
      if (i > 0 && curve.points[i].ranks <= curve.points[i - 1].ranks)
        refuse(at + "/ranks", "is not above the one before");
    }
  }

  const fs::path& path_;
  const Json file_;
};

}  // namespace

bool is_published_curve(const fs::path& path) {
  try {
    const Json json = parse_json_text(read_input_file(path, kLargestText), kDeepestText);
    return json.is_object() && json.value("kind", Json()) == "published_curve";
  } catch (const std::runtime_error&) {
    return false;  // whatever it is, readers of records say what is wrong with it
  }
}

PublishedCurve parse_published_curve(std::string_view text, const fs::path& path) {
  try {
    return Reader(path, parse_json_text(text, kDeepestText)).read();
  } catch (const JsonFault& fault) {
    throw ResultError(fmt::format("published curve {}: {}", path.string(), fault.what()));
  }
}

PublishedCurve read_published_curve(const fs::path& path) {
  try {
    return parse_published_curve(read_input_file(path, kLargestText), path);
  } catch (const InputFault& fault) {
    throw ResultError(fmt::format("published curve {}: {}", path.string(), fault.what()));
  }
}

}  // namespace scalemark
