// What `scalemark study` and `scalemark list studies` print.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study_plan.hpp"
#include "json.hpp"

namespace scalemark {

/// Published beside measured, a line a figure, and below what differs, what was skipped and why.
/// What came from records is shown(). Ends with a newline.
std::string study_table(const Json& study_record);
/// The same as Markdown.
std::string study_markdown(const Json& study_record);

/// The figures of two sites beside each other: of each what is published, and what both measured.
std::string sites_table(const Json& first, const Json& second);

/// Of each study its title, and of each profile what it takes and shows.
std::string studies_table(const std::vector<Study>& studies);
/// The same, a study an element.
Json studies_json(const std::vector<Study>& studies);

}  // namespace scalemark
