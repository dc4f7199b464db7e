// Reads places in records that nobody has checked.
#include "analysis/diagnosis/record_view.hpp"

#include <cmath>

#include "record/read.hpp"

namespace scalemark::diagnosis {
namespace {

/// No measurement comes near; products and ratios of what is below stay finite.
constexpr double kLargest = 1e60;

std::optional<double> finite(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::abs(number) < kLargest ? std::optional(number) : std::nullopt;
}

/// The first characters of a text, which is UTF-8.
std::string cut(const std::string& text, std::size_t longest) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80 && ++seen > longest) return text.substr(0, i) + "\u2026";
  return text;
}

}  // namespace

RecordView::RecordView(const Json& record) : value_(&record) { id_ = words("id"); }

const Json* RecordView::find(const Path& of) const { return find_part(*value_, of.text); }

Number RecordView::number(const Path& path) const {
  Number number = reading<double>(path);
  if (const Json* value = find(path)) number.value = finite(*value);
  return number;
}

Bounds RecordView::bounds(const Path& path) const {
  Bounds bounds = reading<Interval>(path);
  const Json* value = find(path);
  if (!value || !value->is_array() || value->size() != 2) return bounds;
  const auto low = finite((*value)[0]), high = finite((*value)[1]);
  if (low && high) bounds.value = Interval{*low, *high};
  return bounds;
}

Text RecordView::text(const Path& path, std::size_t longest) const {
  Text text = reading<std::string>(path);
  const Json* value = find(path);
  if (value && value->is_string()) text.value = cut(value->get_ref<const std::string&>(), longest);
  return text;
}

std::string RecordView::words(const Path& path, std::size_t longest) const {
  return text(path, longest).value.value_or("");
}

std::string RecordView::first_words(const Path& list, std::size_t longest) const {
  const Json* value = find(list);
  if (!value || !value->is_array() || value->empty() || !value->front().is_string()) return "";
  return cut(value->front().get_ref<const std::string&>(), longest);
}

std::optional<bool> RecordView::flag(const Path& path) const {
  const Json* value = find(path);
  return value && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

std::string RecordView::config(const std::string& key) const {
  const Json* value = find("config/" + key + "/value");
  if (!value || value->is_null() || value->is_structured()) return "";
  return value->is_string() ? words("config/" + key + "/value") : value->dump();
}

std::vector<RecordView> RecordView::list(const Path& path) const {
  std::vector<RecordView> views;
  const Json* value = find(path);
  if (!value || !value->is_array()) return views;
  for (std::size_t i = 0; i < value->size(); ++i)
    if ((*value)[i].is_object())
      views.push_back(
          RecordView(&(*value)[i], id_, pointer_ + "/" + path.text + "/" + std::to_string(i)));
  return views;
}

}  // namespace scalemark::diagnosis
