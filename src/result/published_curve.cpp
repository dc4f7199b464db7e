// Reads scaling curves that others have published.
#include "result/published_curve.hpp"

#include <fmt/format.h>

#include <string_view>

#include "config/json_text.hpp"
#include "error.hpp"
#include "record/read.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// The least and the largest number of anything: beyond them sums and products are no numbers any
/// more.
constexpr double kLeastPublished = 1e-12, kMostPublished = 1e18;
constexpr double kMostPublishedRanks = 1e9;

/// A wrong unit is the user's word, like an unknown key, and no damage.
void refuse_unit(const Json& file) {
  if (!file.is_object() || !file.contains("unit") || !file["unit"].is_string()) return;
  const Json& unit = file["unit"];
  for (const char* known : {"images/sec", "tokens/sec", "sequences/sec"})
    if (unit == known) return;
  throw ConfigError(fmt::format("/unit is {}; it can be images/sec, tokens/sec or sequences/sec",
                                unit.get<std::string>()));
}

PublishedCurve curve_from(const Json& file) {
  refuse_unit(file);
  auto curve = written_from<PublishedCurve>(file);
  for (std::size_t i = 1; i < curve.points.size(); ++i)
    if (curve.points[i].ranks <= curve.points[i - 1].ranks)
      throw RecordFault(fmt::format("/points/{}/ranks is not above the one before", i));
  return curve;
}

}  // namespace

void PublishedCurve::Point::describe(Fields& fields) {
  const auto positive = [&](const char* key, double Point::*member, const char* text) {
    fields.add(key, member, text).within(kLeastPublished, kMostPublished);
  };
  fields.add("ranks", &Point::ranks, "of the launch").within(1, kMostPublishedRanks);
  positive("batch_size_per_rank", &Point::batch_size_per_rank, "samples of a step");
  positive("throughput", &Point::throughput, "units/sec of all ranks");
}

void PublishedCurve::describe(Fields& fields) {
  using C = PublishedCurve;
  const auto positive = [&]<typename T>(const char* key, T C::*member, const char* text) -> Field& {
    return fields.add(key, member, text).within(kLeastPublished, kMostPublished);
  };
  fields.add("kind", &C::kind, "what the file is").one_of({"published_curve"});
  fields.add("description", &C::description, "in words").filled();
  fields.add("source", &C::source, "where the figures stand").filled();
  fields.add("model", &C::model, "that was trained").filled();
  fields.add("unit", &C::unit, "of throughput")
      .one_of({"images/sec", "tokens/sec", "sequences/sec"});
  fields.add("scaling", &C::scaling, "what stays the same");
  positive("parameters", &C::parameters, "trainable");
  positive("bytes_per_gradient", &C::bytes_per_gradient, "4").optional();
  positive("units_per_sample", &C::units_per_sample, "of tokens/sec the tokens of a sequence")
      .optional();
  fields.add("overlap", &C::overlap, "of communication")
      .one_of({"none", "backward", "step"})
      .optional();
  positive("bucket_mb", &C::bucket_mb, "of gradients (MiB)").optional();
  fields.add("ranks_per_node", &C::ranks_per_node, "where known")
      .within(1, kMostPublishedRanks)
      .optional();
  positive("link_gbit", &C::link_gbit, "nominal, of a node").optional();
  fields.add("points", &C::points, "by ascending ranks").size(2);
}

bool is_published_curve(const fs::path& path) {
  try {
    const Json json = parse_json_text(read_input_file(path, kLargestText), kDeepestText);
    return json.is_object() && json.value("kind", Json()) == "published_curve";
  } catch (const std::runtime_error&) {
    return false;  // whatever it is, readers of records say what is wrong with it
  }
}

PublishedCurve parse_published_curve(std::string_view text, const fs::path& path) {
  const std::string begin = fmt::format("published curve {}: ", path.string());
  try {
    return curve_from(parse_json_text(text, kDeepestText));
  } catch (const UnknownKey& fault) {
    throw ConfigError(begin + fault.what());
  } catch (const RecordFault& fault) {
    throw ResultError(begin + fault.what() + "; see docs/schema/published_curve.schema.json");
  } catch (const JsonFault& fault) {
    throw ResultError(begin + fault.what());
  } catch (const ConfigError& error) {
    throw ConfigError(begin + error.what());
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
