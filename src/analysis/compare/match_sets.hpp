// Which launches of several result sets measured the same: pure functions of what records say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "result/result_set.hpp"

namespace scalemark {

/// One configuration on a number of ranks, and the launches of each set that measured it.
struct MatchedPoint {
  int ranks = 1;
  Json settings;  ///< keys beside ranks in which it differs from other points, with their values
  std::vector<std::vector<const MeasuredLaunch*>> launches;  ///< [set]; empty: it has none there
};

struct Matching {
  std::vector<MatchedPoint> points;  ///< by ranks, then settings
  std::vector<std::string> notes;  ///< keys that not every record tells and that were not compared
};

/// The unit that all of them count. ConfigError, naming two of them, where they count unlike
/// things: images are no tokens, whatever asks for the comparison.
std::string common_unit(const std::vector<const MeasuredLaunch*>& launches,
                        const std::string& metric = "throughput");
/// Returns the unit of all launches of a point.
std::string common_unit(const MatchedPoint& point);

/// Returns, of the keys that nobody has set on either side, those whose default is another in the
/// second set, each with a sentence. A build that changes a default is compared by what it does
/// then.
std::map<std::string, std::string> changed_defaults(const ResultSet& base, const ResultSet& fresh);

/// Matches launches by the keys of MeasuredLaunch but those in `varied`; a key that one version of
/// scalemark did not have yet counts as alike where the other has its default. ConfigError, naming
/// keys and values, where a set and the first one have no value of a key in common, have no point
/// in common, where a set has several values of a varied key at one point, or where no record has a
/// varied key. `sets`: at least two; the result points into them.
Matching match_sets(const std::vector<ResultSet>& sets, const std::vector<std::string>& varied);

/// What makes a difference of the sets doubtful whatever their values are, a sentence each: copies
/// that were counted once; sets from hosts of their own, so that host and build can't be told apart
/// (unless `by_host`: that is the question); preflights that are much older than the launches, or
/// of other days than those of the first set.
std::vector<std::string> set_warnings(const std::vector<ResultSet>& sets, bool by_host = false);

/// A set for each combination of values of `keys` (MeasuredLaunch's keys, "revision" or "host"),
/// labelled "KEY=VALUE ...": those listed, in their order (of one key only), or all, ascending;
/// with revision first by time of commit; those whose records do not tell it stand among the others
/// where their first start does. By revision alone, a part has the failed launches of its build.
/// ConfigError where there are fewer than two or a listed one is missing.
std::vector<ResultSet> split_by(const ResultSet& set, const std::vector<std::string>& keys,
                                const std::vector<std::string>& values);

/// " model=resnet50 precision=bf16": what tells a point from others of its rank count.
std::string settings_text(const MatchedPoint& point);

/// A value of a key as a person would write it: a text without quotes.
std::string plain_value(const Json& value);

}  // namespace scalemark
