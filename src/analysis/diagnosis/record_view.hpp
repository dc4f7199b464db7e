// A place in a record, read so that a value of another type than its schema's is no value: what
// diagnoses a folder meets files that nobody has checked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/diagnosis/finding.hpp"
#include "json.hpp"
#include "record/describe.hpp"

namespace scalemark::diagnosis {

/// A path below a place, "communication/exposed_seconds", or the key of a member that src/record
/// describes.
struct Path {
  Path(const char* path) : text(path) {}
  Path(std::string path) : text(std::move(path)) {}
  template <typename T, typename Member>
  Path(Member T::*member) : text(key_of(member)) {}
  std::string text;
};

class RecordView {
 public:
  /// The whole of a record, which must outlive the view.
  explicit RecordView(const Json& record);

  const std::string& id() const { return id_; }
  Number number(const Path& path) const;
  Bounds bounds(const Path& path) const;
  /// Cut after so many characters.
  Text text(const Path& path, std::size_t longest = 300) const;
  std::string words(const Path& path, std::size_t longest = 300) const;
  /// The first text of a list, cut likewise; empty where there is none.
  std::string first_words(const Path& list, std::size_t longest) const;
  std::optional<bool> flag(const Path& path) const;
  bool is_true(const Path& path) const { return flag(path) == true; }
  /// The value of a configuration key as text; empty where there is none.
  std::string config(const std::string& key) const;
  /// Returns a view of each object in a list.
  std::vector<RecordView> list(const Path& path) const;

 private:
  RecordView(const Json* value, std::string id, std::string pointer)
      : value_(value), id_(std::move(id)), pointer_(std::move(pointer)) {}
  const Json* find(const Path& path) const;
  template <typename T>
  Reading<T> reading(const Path& path) const {
    return {std::nullopt, id_, pointer_ + "/" + path.text};
  }

  const Json* value_;
  std::string id_, pointer_;
};

}  // namespace scalemark::diagnosis
