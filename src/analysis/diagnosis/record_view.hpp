// A place in a record, read so that a value of another type than its schema's is no value: what
// diagnoses a folder meets files that nobody has checked.
#pragma once

#include <string>
#include <vector>

#include "analysis/diagnosis/finding.hpp"
#include "json.hpp"

namespace scalemark::diagnosis {

class RecordView {
 public:
  /// The whole of a record, which must outlive the view.
  explicit RecordView(const Json& record);

  const std::string& id() const { return id_; }
  /// Paths are below this place: "communication/exposed_seconds".
  Number number(const std::string& path) const;
  Bounds bounds(const std::string& path) const;
  /// Cut after so many characters.
  Text text(const std::string& path, std::size_t longest = 300) const;
  std::string words(const std::string& path, std::size_t longest = 300) const;
  std::optional<bool> flag(const std::string& path) const;
  bool is_true(const std::string& path) const { return flag(path) == true; }
  /// The value of a configuration key as text; empty where there is none.
  std::string config(const std::string& key) const;
  /// Of each object in a list.
  std::vector<RecordView> list(const std::string& path) const;

 private:
  RecordView(const Json* value, std::string id, std::string pointer)
      : value_(value), id_(std::move(id)), pointer_(std::move(pointer)) {}
  const Json* find(const std::string& path) const;
  template <typename T>
  Reading<T> reading(const std::string& path) const {
    return {std::nullopt, id_, pointer_ + "/" + path};
  }

  const Json* value_;
  std::string id_, pointer_;
};

}  // namespace scalemark::diagnosis
