// Reads files that a user names, and parses JSON with limits.
#include "config/json_text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"

namespace scalemark {

namespace {

/// The largest memory of a tree. A record of 32 MiB whose values are step times takes a third of
/// it.
constexpr std::size_t kMostBytes = 128 << 20;
/// The first allocation of a text or a container, including the overhead of the heap.
constexpr std::size_t kAllocation = 48;
constexpr std::size_t kLongestMessage = 300;

/// Returns nlohmann's message without its exception number, and with a long token shortened: "parse
/// error at line 2, column 5: ...".
std::string plain_message(const std::exception& error) {
  std::string message = error.what();
  if (const std::size_t end = message.find("] "); end != message.npos) message.erase(0, end + 2);
  if (message.size() > kLongestMessage) message = message.substr(0, kLongestMessage) + "...";
  return message;
}

/// Builds the tree. nlohmann's own builder looks every key up among those before it, which takes
/// the square of their number, and keeps the last of two that are alike.
class TreeBuilder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit TreeBuilder(int deepest) : deepest_(static_cast<std::size_t>(deepest)) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t&) { return false; }  // not of JSON as text

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool end_object() {
    refuse_duplicates(*open_.back());
    return close();
  }
  bool key(string_t& name) {
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    throw JsonFault(plain_message(error));
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == deepest_)
      throw JsonFault(fmt::format("nested deeper than {} levels", deepest_));
    open_.push_back(&place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Adds a value to the open container and returns it. References to open values stay valid, since
  /// nothing is added beside them before their end.
  Json& place(Json value) {
    if (value.is_string()) {
      count(kAllocation);
      count_text(value.get_ref<const std::string&>());
    }
    if (value.is_structured()) count(2 * kAllocation);
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    // A vector that grows holds its elements twice for a moment.
    if (parent.is_array()) {
      count(2 * sizeof(Json));
      return parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    count(2 * sizeof(Json::object_t::value_type));
    count_text(key_);
    auto& members = parent.get_ref<Json::object_t&>();
    // This is emplace_back() of the underlying vector; that of the map would look the key up.
    static_cast<Json::object_t::Container&>(members).emplace_back(std::move(key_),
                                                                  std::move(value));
    return members.back().second;
  }

  void count(std::size_t bytes) {
    if ((bytes_ += bytes) > kMostBytes)
      throw JsonFault(fmt::format("its values take more than {} MiB of memory", kMostBytes >> 20));
  }
  void count_text(const std::string& text) {
    static const std::size_t in_place = std::string().capacity();
    if (text.size() > in_place) count(text.size() + kAllocation);
  }

  void refuse_duplicates(const Json& object) {
    const auto& members = object.get_ref<const Json::object_t&>();
    order_.resize(members.size());
    std::iota(order_.begin(), order_.end(), 0U);
    const auto name = [&](std::uint32_t i) -> const std::string& {
      return (members.begin() + i)->first;
    };
    std::ranges::sort(order_, {}, name);
    const auto twice = std::ranges::adjacent_find(order_, {}, name);
    if (twice != order_.end())
      throw JsonFault(
          fmt::format("the key {} is there twice{}", quote(name(*twice)), where_it_is()));
  }

  /// Returns the place of the innermost object, such as " in /points/3", or nothing for the
  /// outermost.
  std::string where_it_is() const {
    nlohmann::json::json_pointer path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (open_[i]->is_array())
        path.push_back(std::to_string(open_[i]->size() - 1));
      else
        path.push_back(open_[i]->get_ref<const Json::object_t&>().back().first);
    }
    return path.empty() ? "" : " in " + quote(path.to_string());
  }

  std::size_t deepest_, bytes_ = 0;
  Json root_;
  std::string key_;
  std::vector<Json*> open_;
  std::vector<std::uint32_t> order_;  // of an object's members by name; kept for its memory
};

[[noreturn]] void refuse_with_errno(const char* what) {
  throw InputFault(errno == ENOENT || errno == ENOTDIR,
                   errno == ENOENT || errno == ENOTDIR
                       ? "no such file"
                       : fmt::format("{}: {}", what, std::strerror(errno)));
}

const char* name_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void refuse_size(std::size_t most_bytes) {
  throw InputFault(false, fmt::format("larger than {} bytes", most_bytes));
}

class OpenFile {
 public:
  /// Opens the file without blocking, since a pipe that nobody writes to must not hang the reader.
  explicit OpenFile(const std::filesystem::path& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    // A socket can't be opened at all.
    if (file_ < 0 && errno == ENXIO) throw InputFault(false, "a socket, not a regular file");
    if (file_ < 0) refuse_with_errno("cannot be opened");
  }
  ~OpenFile() { close(file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void check(std::size_t most_bytes) const {
    struct stat there {};
    if (fstat(file_, &there) != 0) refuse_with_errno("cannot be read");
    if (!S_ISREG(there.st_mode))
      throw InputFault(false, fmt::format("{}, not a regular file", name_of(there.st_mode)));
    if (static_cast<std::size_t>(there.st_size) > most_bytes) refuse_size(most_bytes);
  }

  /// Reads it. The reported size may be wrong (/proc), or the file may grow meanwhile.
  void read_all(std::size_t most_bytes,
                const std::function<void(std::string_view part)>& take) const {
    std::array<char, 1 << 16> block;
    for (std::size_t size = 0;;) {
      const ssize_t got = read(file_, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_with_errno("cannot be read");
      if (got == 0) return;
      if ((size += static_cast<std::size_t>(got)) > most_bytes) refuse_size(most_bytes);
      take(std::string_view(block.data(), static_cast<std::size_t>(got)));
    }
  }

 private:
  int file_;
};

}  // namespace

Json parse_json_text(std::string_view text, int deepest) {
  // nlohmann takes it for the end, and drops what follows.
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw JsonFault(fmt::format("a zero byte at byte {}", zero));
  TreeBuilder builder(deepest);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string shown_value(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return value.is_string() ? quote(value.get_ref<const std::string&>()) : value.dump();
}

Json parse_json_object(std::string_view text, std::string_view name, std::string_view what) {
  if (text.size() > kLargestText)
    throw ConfigError(
        fmt::format("{}: larger than {} bytes, the limit of a {}", name, kLargestText, what));
  try {
    Json document = parse_json_text(text, kDeepestText);
    if (document.is_object()) return document;
  } catch (const JsonFault& fault) {
    throw ConfigError(fmt::format("{}: {}", name, fault.what()));
  }
  throw ConfigError(
      fmt::format("{}: a {} is one JSON object such as {{\"model\": \"resnet50\"}}", name, what));
}

std::string read_json_text(const std::filesystem::path& path, std::string_view what) {
  try {
    return read_input_file(path, kLargestText);
  } catch (const InputFault& fault) {
    throw ConfigError(
        fmt::format("{}: {}; give the path of a JSON {}", path.string(), fault.what(), what));
  }
}

Json read_json_object(const std::filesystem::path& path, std::string_view what) {
  return parse_json_object(read_json_text(path, what), path.string(), what);
}

std::string pointer_to(const std::string& member) {
  nlohmann::json::json_pointer path;
  path.push_back(member);
  const std::string pointer = path.to_string();
  const std::string shown = quote(pointer);
  return shown == '"' + pointer + '"' ? pointer : shown;
}

std::string read_input_file(const std::filesystem::path& path, std::size_t most_bytes) {
  std::string text;
  read_in_parts(path, most_bytes, [&](std::string_view part) { text += part; });
  return text;
}

void read_in_parts(const std::filesystem::path& path, std::size_t most_bytes,
                   const std::function<void(std::string_view part)>& take) {
  const OpenFile file(path);
  file.check(most_bytes);
  file.read_all(most_bytes, take);
}

}  // namespace scalemark
