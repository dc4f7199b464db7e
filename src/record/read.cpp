// Values from JSON, shape by shape, each checked by the limits of its field.
#include "record/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "config/json_text.hpp"
#include "config/text.hpp"
#include "measure/statistics.hpp"

namespace scalemark {
namespace {

/// In place of the value of a key that is not there.
const Json kMissing(Json::value_t::discarded);

constexpr const char* kScalarTypes[] = {"boolean", "integer", "number", "string"};

std::string of_type(const JsonReader& reader, std::string_view type) {
  return fmt::format("of type {}{}", type, reader.nullable ? " or null" : "");
}

[[noreturn]] void refuse_value(const JsonReader& reader, const Json& json,
                               const std::string& what) {
  reader.refuse(fmt::format("is {}, not {}", shown_value(json), what));
}

void check_type(const JsonReader& reader, bool fits, const Json& json, std::string_view type) {
  if (!fits) refuse_value(reader, json, of_type(reader, type));
}

void check_range(const JsonReader& reader, const Limits& limits, double number, const Json& json) {
  const auto check = [&](const std::optional<double>& limit, const char* what, auto fits) {
    if (limit && !fits(number, *limit))
      reader.refuse(fmt::format("is {}, not {} {}", json.dump(), what, *limit));
  };
  check(limits.least, "at least", std::greater_equal<>());
  check(limits.most, "at most", std::less_equal<>());
  check(limits.above, "above", std::greater<>());
  check(limits.below, "below", std::less<>());
}

void check_size(const JsonReader& reader, const Limits& limits, std::size_t size,
                const Json& json) {
  if (size >= limits.fewest.value_or(0) && (!limits.longest || size <= *limits.longest)) return;
  reader.refuse(fmt::format("({}) has a size of {}, not from {} to {}", shown_value(json), size,
                            limits.fewest.value_or(0),
                            limits.longest ? std::to_string(*limits.longest) : "any"));
}

void check_words(const JsonReader& reader, const Json& words, const Json& json) {
  if (words.is_null() || std::ranges::find(words, json) != words.end()) return;
  if (words.size() == 1 && !reader.nullable) refuse_value(reader, json, words[0].dump());
  Json legal = words;
  if (reader.nullable) legal.push_back(nullptr);
  refuse_value(reader, json, "one of " + legal.dump());
}

}  // namespace

bool is_whole(const Json& json) {
  if (json.is_number_integer()) return true;
  if (!json.is_number_float()) return false;
  const double number = json.get<double>();
  return std::abs(number) < 9e15 && number == std::floor(number);
}

void JsonReader::read(const Fields& fields, const Json& json, void* object) {
  check_type(*this, json.is_object(), json, "object");
  nullable = false;
  if (only_known) refuse_unknown(fields, json);
  auto next = json.begin();
  for (const Field& field : fields) {
    // Keys stand in the order of the fields in nearly every record: no search.
    const auto found = next != json.end() && next.key() == field.key ? next : json.find(field.key);
    read_field(field, found == json.end() ? kMissing : *found, object);
    if (found != json.end()) next = std::next(found);
  }
  check_alternatives(fields, json);
}

void JsonReader::check_alternatives(const Fields& fields, const Json& json) const {
  const auto& keys = fields.alternatives();
  const auto there =
      std::ranges::count_if(keys, [&](const std::string& key) { return json.contains(key); });
  if (!keys.empty() && there != 1)
    refuse(fmt::format("needs one of {}, has {} of them", fmt::join(keys, ", "), there));
}

void JsonReader::refuse_unknown(const Fields& fields, const Json& json) {
  std::vector<std::string> known;
  for (const Field& field : fields) known.emplace_back(field.key);
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(known, key) == known.end())
      throw UnknownKey(fmt::format("{}{} is no key of it{} (legal: {})", pointer(), pointer_to(key),
                                   did_you_mean(key, known), fmt::join(known, ", ")));
}

void JsonReader::read_field(const Field& field, const Json& json, void* object) {
  void* member = static_cast<char*>(object) + field.offset;
  const bool newer = field.first_revision > revision_;
  // Of a record that was read from a file, what is newer has been made null.
  const bool made_null = newer && json.is_null() && !field.shape->may_be_unknown();
  if (!json.is_discarded() && !made_null)
    return read_below(field.key, field, *field.shape, json, member);
  if (field.may_lack) return;
  if (newer)
    return field.shape->set_missing(
        fmt::format("not in records before schema_revision {}", field.first_revision), member);
  if (missing == MissingKeys::allowed) return;
  place_.emplace_back(field.key);
  refuse("is missing");
}

void JsonReader::read_below(std::string_view key, const Field& field, const Shape& shape,
                            const Json& json, void* value) {
  place_.emplace_back(key);
  shape.read(*this, field, json, value);
  place_.pop_back();
}

void JsonReader::read_item(std::size_t index, const Field& field, const Shape& shape,
                           const Json& json, void* value) {
  place_.emplace_back(index);
  shape.read(*this, field, json, value);
  place_.pop_back();
}

std::string JsonReader::pointer() const {
  std::string pointer;
  for (const auto& step : place_)
    pointer += std::holds_alternative<std::size_t>(step)
                   ? "/" + std::to_string(std::get<std::size_t>(step))
                   : pointer_to(std::string(std::get<std::string_view>(step)));
  return pointer;
}

void JsonReader::refuse(const std::string& what) const {
  const std::string place = pointer();
  throw RecordFault(fmt::format("{}{}{}", place, place.empty() ? "" : " ", what));
}

std::string JsonReader::reason() const {
  std::string path;
  for (const auto& step : place_)
    if (const auto* key = std::get_if<std::string_view>(&step))
      path.append(path.empty() ? "" : ".").append(*key);
  const auto found = reasons_->find(path);
  return found != reasons_->end() && found->is_string() ? found->get<std::string>() : "";
}

void ScalarShape::check(JsonReader& reader, const Field& field, const Json& json) const {
  check_words(reader, field.limits.words, json);
  const bool fits = scalar_ == Scalar::boolean  ? json.is_boolean()
                    : scalar_ == Scalar::whole  ? is_whole(json)
                    : scalar_ == Scalar::number ? json.is_number()
                                                : json.is_string();
  check_type(reader, fits, json, kScalarTypes[static_cast<std::size_t>(scalar_)]);
  if (json.is_number()) check_range(reader, field.limits, json.get<double>(), json);
  if (json.is_string())
    check_size(reader, field.limits, json.get_ref<const std::string&>().size(), json);
}

void AnyShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  const auto fits = [&](const Json& type) {
    return type == "null"      ? json.is_null()
           : type == "boolean" ? json.is_boolean()
           : type == "integer" ? is_whole(json)
           : type == "number"  ? json.is_number()
           : type == "string"  ? json.is_string()
           : type == "array"   ? json.is_array()
                               : json.is_object();
  };
  if (const Json& types = field.json_types; !types.is_null() && std::ranges::none_of(types, fits))
    check_type(reader, false, json,
               fmt::format("{}", fmt::join(types.get<std::vector<std::string>>(), " or ")));
  *static_cast<Json*>(value) = json;
}

std::size_t NameShape::find(JsonReader& reader, const Field& field, const Json& json) const {
  const auto name =
      std::ranges::find(names_, json.is_string() ? json.get_ref<const std::string&>() : "");
  check_words(reader, field.limits.words, json);
  if (name == names_.end()) check_words(reader, std::vector(names_.begin(), names_.end()), json);
  return static_cast<std::size_t>(name - names_.begin());
}

void ObjectShape::read(JsonReader& reader, const Field& field, const Json& json,
                       void* value) const {
  if (json.is_object()) check_size(reader, field.limits, json.size(), json);
  reader.read(fields_(), json, value);
}

void ListShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  check_type(reader, json.is_array(), json, "array");
  check_size(reader, field.limits, json.size(), json);
  reader.nullable = false;
  if (!resize(value, json.size()))
    reader.refuse(
        fmt::format("({}) has a size of {}, not {}", shown_value(json), json.size(), fixed()));
  const Field inner = field.inner();
  for (std::size_t i = 0; i < json.size(); ++i)
    reader.read_item(i, inner, inner_, json[i], item(value, i));
}

void NumbersShape::read(JsonReader& reader, const Field& field, const Json& json,
                        void* value) const {
  check_type(reader, json.is_array(), json, "array");
  check_size(reader, field.limits, json.size(), json);
  auto& numbers = *static_cast<std::vector<double>*>(value);
  numbers.clear();
  numbers.reserve(json.size());
  const bool limited =
      field.limits.least || field.limits.most || field.limits.above || field.limits.below;
  for (const Json& part : json) {
    if (part.is_null() && field.null_numbers != nullptr) {
      numbers.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    if (!part.is_number() || limited) {
      reader.nullable = field.null_numbers != nullptr;
      const std::size_t at = numbers.size();
      reader.read_item(at, field, shape_of<double>(), part, &numbers.emplace_back());
    } else {
      numbers.push_back(part.get<double>());
    }
  }
}

void IntervalShape::read(JsonReader& reader, const Field&, const Json& json, void* value) const {
  check_type(reader, json.is_array(), json, "array");
  if (json.size() != 2)
    reader.refuse(
        fmt::format("({}) has a size of {}, not from 2 to 2", shown_value(json), json.size()));
  reader.nullable = false;
  for (std::size_t i = 0; i < 2; ++i)
    if (!json[i].is_number()) {
      static const Field any("", 0, shape_of<double>(), "");
      double ignored = 0;
      reader.read_item(i, any, shape_of<double>(), json[i], &ignored);
    }
  *static_cast<Interval*>(value) = {json[0].get<double>(), json[1].get<double>()};
}

void MapShape::read(JsonReader& reader, const Field& field, const Json& json, void* value) const {
  check_type(reader, json.is_object(), json, "object");
  check_size(reader, field.limits, json.size(), json);
  reader.nullable = false;
  clear(value);
  const Field inner = field.inner();
  for (const auto& [key, part] : json.items())
    reader.read_below(key, inner, inner_, part, add(value, key));
}

void NullableShape::read(JsonReader& reader, const Field& field, const Json& json,
                         void* value) const {
  if (json.is_null() && !field.may_lack)
    return set_missing(why(value) ? reader.reason() : "", value);
  reader.nullable = !field.may_lack;
  inner_.read(reader, field, json, emplace(value));
  reader.nullable = false;
}

const Json* find_part(const Json& json, std::string_view path) {
  const Json* part = &json;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!part->is_object()) return nullptr;
    const auto found = part->find(path.substr(begin, end - begin));
    if (found == part->end()) return nullptr;
    part = &*found;
    begin = end + 1;
  }
  return part;
}

namespace {

/// Of "a/b"; null where it is not there.
const Json& at(const Json& json, std::string_view path) {
  static const Json none;
  const Json* part = find_part(json, path);
  return part ? *part : none;
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double number(const Json& json, std::string_view path) {
  const Json& found = at(json, path);
  return found.is_number() ? found.get<double>() : kUnknown;
}

bool is_ok(const Json& part) { return at(part, "status") == "ok"; }
bool any(const Json&) { return true; }
bool communicates(const Json& repeat) { return at(repeat, "baseline") == false; }
bool is_baseline(const Json& repeat) { return at(repeat, "baseline") == true; }

/// A sum over the parts of a list; unknown where it has none.
double sum(const Json& list, std::string_view path, bool (*counts)(const Json&) = any) {
  double total = kUnknown;
  for (const Json& part : list)
    if (counts(part)) total = (std::isnan(total) ? 0 : total) + number(part, path);
  return total;
}

double mean(const Json& list, std::string_view path, bool (*counts)(const Json&) = any) {
  return sum(list, path, counts) / static_cast<double>(std::ranges::count_if(list, counts));
}

double count(const Json& list) {
  return list.is_array() && !list.empty() ? static_cast<double>(list.size()) : kUnknown;
}

/// Of the ranks that a record lists, each counted once.
double different_ranks(const Json& ranks) {
  std::set<double> found;
  for (const Json& rank : ranks) found.insert(number(rank, "rank"));
  return found.empty() ? kUnknown : static_cast<double>(found.size());
}

/// Of a run's steps, by the keys of step_seconds; unknown where one of them is.
Json step_quantiles(const Json& run) {
  const Json& samples = at(run, "step_seconds/samples");
  const auto is_number = [](const Json& value) { return value.is_number(); };
  if (!samples.is_array() || !std::ranges::all_of(samples, is_number)) return nullptr;
  const auto seconds = samples.get<std::vector<double>>();
  return {{"p50", quantile(seconds, 0.5)},
          {"p90", quantile(seconds, 0.9)},
          {"p99", quantile(seconds, 0.99)}};
}

double pooled_rate(const Json& point, bool (*counts)(const Json&)) {
  const Json& repeats = at(point, "repeats");
  return sum(repeats, "units", counts) / sum(repeats, "seconds", counts);
}

Json most_severe(const Json& checks) {
  constexpr const char* kByGravity[] = {"fail", "warn", "pass"};
  for (const char* status : kByGravity)
    if (std::ranges::any_of(checks, [&](const Json& c) { return at(c, "status") == status; }))
      return status;
  return nullptr;
}

Json code_of(const Json& verdict) {
  const Json& word = at(verdict, "verdict");
  if (word.is_null()) return nullptr;
  return word == "pass" ? 0 : word == "regressed" ? 1 : 3;
}

enum class Relation { is, at_least, at_most, inside };

/// What a value of each record of a kind, or of each part of its lists, is by its other values. Of
/// an object, each member that is computed; `inside` has the interval computed.
struct Identity {
  std::string_view kinds;  ///< words
  std::string_view
      lists;  ///< words; "points/repeats": each repeat of each point; empty: the record
  std::string_view value;
  Relation relation;
  std::string_view text;  ///< of what it is
  Json (*computed)(const Json& part, const Json& record);
};

using Part = const Json&;
using enum Relation;

constexpr Identity kIdentities[] = {
    {"run inference preflight", "", "created_at", at_least, "started_at",
     [](Part r, Part) { return at(r, "started_at"); }},
    {"run inference", "", "world_size", is, "the number of ranks",
     [](Part r, Part) -> Json { return different_ranks(at(r, "ranks")); }},
    {"run inference", "", "world_size", is, "the sum of placement's ranks",
     [](Part r, Part) -> Json { return sum(at(r, "placement"), "ranks"); }},
    {"run inference", "", "throughput/mean", inside, "throughput.ci95",
     [](Part r, Part) { return at(r, "throughput/ci95"); }},
    {"run inference", "", "throughput/per_rank_max", at_least, "throughput.per_rank_min",
     [](Part r, Part) { return at(r, "throughput/per_rank_min"); }},
    {"run", "", "global_batch_size", is, "batch_size_per_rank x world_size",
     [](Part r, Part) -> Json {
       return number(r, "batch_size_per_rank") * number(r, "world_size");
     }},
    {"run", "", "throughput/mean", is, "steps x units_per_step / wall_seconds",
     [](Part r, Part) -> Json {
       return number(r, "steps") * number(r, "units_per_step") / number(r, "wall_seconds");
     }},
    {"run", "", "throughput/median", is, "units_per_step / step_seconds.p50",
     [](Part r, Part) -> Json {
       return number(r, "units_per_step") / number(r, "step_seconds/p50");
     }},
    {"run", "", "step_seconds/mean", is, "wall_seconds / steps",
     [](Part r, Part) -> Json { return number(r, "wall_seconds") / number(r, "steps"); }},
    {"run", "", "steps", is, "the number of step_seconds.samples",
     [](Part r, Part) -> Json { return count(at(r, "step_seconds/samples")); }},
    {"run", "", "step_seconds", is, "the quantile of step_seconds.samples",
     [](Part r, Part) { return step_quantiles(r); }},
    {"inference", "", "throughput/mean", is, "queries x units_per_query / wall_seconds",
     [](Part r, Part) -> Json {
       return number(r, "queries") * number(r, "units_per_query") / number(r, "wall_seconds");
     }},
    {"inference", "", "queries", is, "the sum of the ranks' queries",
     [](Part r, Part) -> Json { return sum(at(r, "ranks"), "queries"); }},
    {"scaling", "points", "global_batch_size", is, "batch_size_per_rank x ranks",
     [](Part p, Part) -> Json { return number(p, "batch_size_per_rank") * number(p, "ranks"); }},
    {"scaling", "points/repeats points/exposed_collectives/repeats", "throughput", is,
     "units / seconds",
     [](Part p, Part) -> Json { return number(p, "units") / number(p, "seconds"); }},
    {"scaling", "points", "throughput", is, "units / seconds of all repeats",
     [](Part p, Part) -> Json { return pooled_rate(p, communicates); }},
    {"scaling", "points", "baseline_throughput", is, "units / seconds of all baseline repeats",
     [](Part p, Part) -> Json { return pooled_rate(p, is_baseline); }},
    {"scaling", "points", "throughput", inside, "ci95", [](Part p, Part) { return at(p, "ci95"); }},
    {"scaling", "points", "speedup", inside, "speedup_ci95",
     [](Part p, Part) { return at(p, "speedup_ci95"); }},
    {"scaling", "points", "efficiency", inside, "efficiency_ci95",
     [](Part p, Part) { return at(p, "efficiency_ci95"); }},
    {"instances", "alone/repeats points/repeats", "sum_of_rates", is, "the sum of instances' rates",
     [](Part p, Part) -> Json {
       return is_ok(p) ? sum(at(p, "instances"), "throughput") : kUnknown;
     }},
    {"instances", "points", "cumulative/mean", is, "the mean of the repeats' throughput",
     [](Part p, Part) -> Json { return mean(at(p, "repeats"), "throughput", is_ok); }},
    {"instances", "points", "cumulative/sum_of_rates", is, "the mean of the repeats' sum_of_rates",
     [](Part p, Part) -> Json { return mean(at(p, "repeats"), "sum_of_rates", is_ok); }},
    {"instances", "points", "cumulative/mean", inside, "cumulative.ci95",
     [](Part p, Part) { return at(p, "cumulative/ci95"); }},
    {"instances", "points", "instances", is, "the number of per_instance",
     [](Part p, Part) -> Json { return count(at(p, "per_instance")); }},
    {"instances", "points/per_instance", "ratio", is, "throughput / alone",
     [](Part p, Part) -> Json { return number(p, "throughput") / number(p, "alone"); }},
    {"comparison", "", "base", is, "the label of the first set",
     [](Part r, Part) {
       const Json& sets = at(r, "sets");
       return sets.is_array() && !sets.empty() ? at(sets[0], "label") : Json();
     }},
    {"comparison", "points further/points", "difference_percent", inside, "interval_percent",
     [](Part p, Part) { return at(p, "interval_percent"); }},
    {"comparison verdict", "points further/points", "p_adjusted", at_least, "p",
     [](Part p, Part) { return at(p, "p"); }},
    {"verdict", "", "exit_code", is, "that of its verdict",
     [](Part r, Part) { return code_of(r); }},
    {"verdict", "", "slowdown_percent", inside, "interval_percent",
     [](Part r, Part) { return at(r, "interval_percent"); }},
    {"verdict", "points", "regressed", is, "what a verdict other than regressed has at each point",
     [](Part, Part r) { return at(r, "verdict") == "regressed" ? Json() : Json(false); }},
    {"preflight", "", "verdict", is, "the most severe status of its checks",
     [](Part r, Part) { return most_severe(at(r, "checks")); }},
};

/// Far above what rounding leaves, far below what a verdict rests on.
constexpr double kRounding = 1e-4;
constexpr std::size_t kSecondsOfTime = 19;  // "2026-11-27T06:10:31" of a time in UTC

bool holds(const Json& value, Relation relation, const Json& computed) {
  if (value.is_boolean() && computed.is_boolean()) return value == computed;
  if (value.is_string() && computed.is_string()) {
    if (relation == is) return value == computed;
    const auto seconds = [](const Json& time) {
      return std::string_view(time.get_ref<const std::string&>()).substr(0, kSecondsOfTime);
    };
    return seconds(value) >= seconds(computed);
  }
  if (!value.is_number() || !computed.is_number()) return true;
  const double a = value.get<double>(), b = computed.get<double>();
  const double slack = kRounding * std::max(std::abs(a), std::abs(b));
  if (!std::isfinite(b)) return true;
  const bool too_small = a<b - slack, too_large = a> b + slack;
  return (relation == at_most || !too_small) && (relation == at_least || !too_large);
}

/// What contradicts `value` at `pointer`, by what was computed.
std::optional<std::string> find_wrong(const Json& value, const std::string& pointer,
                                      Relation relation, const Json& computed,
                                      const std::string& text) {
  if (relation == inside) {
    if (!computed.is_array() || computed.size() != 2) return std::nullopt;
    auto below = find_wrong(value, pointer, at_least, computed[0], "the lower end of " + text);
    return below ? below
                 : find_wrong(value, pointer, at_most, computed[1], "the upper end of " + text);
  }
  if (computed.is_object()) {
    for (const auto& [key, part] : computed.items())
      if (auto found = find_wrong(at(value, key), pointer + "/" + key, relation, part, text))
        return found;
    return std::nullopt;
  }
  if (value.is_null() || holds(value, relation, computed)) return std::nullopt;
  constexpr const char* kWords[] = {"", "at least ", "at most "};
  return fmt::format("{} is {}, not {}{} = {}", pointer, shown_value(value),
                     kWords[static_cast<std::size_t>(relation)], shown_value(computed), text);
}

/// Of every part of a list below `part`, until one of them is contradicted.
std::optional<std::string> find_in(const Identity& identity, std::string_view list,
                                   const Json& part, const std::string& pointer,
                                   const Json& record) {
  if (list.empty()) {
    const Json& value = at(part, identity.value);
    if (value.is_null()) return std::nullopt;
    return find_wrong(value, fmt::format("{}/{}", pointer, identity.value), identity.relation,
                      identity.computed(part, record), std::string(identity.text));
  }
  const std::size_t end = std::min(list.find('/'), list.size());
  const Json& parts = at(part, list.substr(0, end));
  if (!parts.is_array()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (auto found = find_in(identity, list.substr(std::min(end + 1, list.size())), parts[i],
                             fmt::format("{}/{}/{}", pointer, list.substr(0, end), i), record))
      return found;
  return std::nullopt;
}

/// Of an empty text one that is empty.
std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t end = text.find(' ');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<std::string> contradiction(const Json& record) {
  const std::string kind = record.at("kind");
  for (const Identity& identity : kIdentities) {
    const auto kinds = words_in(identity.kinds);
    if (std::ranges::find(kinds, kind) == kinds.end()) continue;
    for (const std::string_view list : words_in(identity.lists))
      if (auto found = find_in(identity, list, record, "", record)) return found;
  }
  return std::nullopt;
}

}  // namespace scalemark
