// See parse_json.hpp.
#include "result/parse_json.hpp"

#include <string>
#include <utility>
#include <vector>

namespace scalemark {
namespace {

/// Collects the parts of every open object and array and makes each of them once, at its end. The
/// names of its members are those that the parser calls.
class JsonBuilder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) { return add(value); }
  bool string(string_t& value) { return add(value); }
  bool binary(binary_t& /*no JSON has it*/) { return false; }
  bool key(string_t& name) {
    keys_.push_back(name);
    return true;
  }
  bool start_object(std::size_t /*unknown*/) { return open(); }
  bool start_array(std::size_t /*unknown*/) { return open(); }

  bool end_object() {
    const std::size_t begin = close(), count = parts_.size() - begin;
    const std::size_t first_key = keys_.size() - count;
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    members.reserve(count);
    for (std::size_t i = 0; i < count; ++i)  // of a key that is there twice the last value counts
      members[std::move(keys_[first_key + i])] = std::move(parts_[begin + i]);
    keys_.resize(first_key);
    return replace_from(begin, std::move(object));
  }

  bool end_array() {
    const std::size_t begin = close();
    Json array = Json::array();
    array.get_ref<Json::array_t&>().assign(
        std::make_move_iterator(parts_.begin() + static_cast<std::ptrdiff_t>(begin)),
        std::make_move_iterator(parts_.end()));
    return replace_from(begin, std::move(array));
  }

  static bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                          const Json::exception& error) {
    throw Json::exception(error);
  }

  Json take() { return std::move(parts_.front()); }

 private:
  bool add(Json value) {
    parts_.push_back(std::move(value));
    return true;
  }
  bool open() {
    begins_.push_back(parts_.size());
    return true;
  }
  std::size_t close() {
    const std::size_t begin = begins_.back();
    begins_.pop_back();
    return begin;
  }
  bool replace_from(std::size_t begin, Json whole) {
    parts_.resize(begin);
    return add(std::move(whole));
  }

  std::vector<Json> parts_;          ///< complete values whose object or array is still open
  std::vector<std::string> keys_;    ///< of the open objects
  std::vector<std::size_t> begins_;  ///< [depth]: of the parts of an open object or array
};

}  // namespace

Json parse_json(std::string_view text) {
  JsonBuilder builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace scalemark
