// How values of C++ types stand in JSON. Included by describe.hpp alone.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/names.hpp"
#include "json.hpp"
#include "measure/statistics.hpp"
#include "record/known.hpp"

namespace scalemark {

class Field;
class Fields;
class JsonWriter;
class JsonReader;

/// Members of an object whose keys are data, in their order.
template <typename T>
using Entries = std::vector<std::pair<std::string, T>>;

/// A type of values: its form in JSON, without the C++ type. One object of each serves all fields.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual Json write(JsonWriter& writer, const Field& field, const void* value) const = 0;
  /// Throws RecordFault.
  virtual void read(JsonReader& reader, const Field& field, const Json& json,
                    void* value) const = 0;
  /// As JSON Schema.
  virtual Json schema(const Field& field) const = 0;
  /// The fields of an object, of the objects in a list, or of what may be unknown.
  virtual const Fields* fields() const { return nullptr; }
  /// "[]" for each list, ".*" for each map, on the way to those fields.
  virtual std::string path() const { return ""; }
  /// What a record that is older than the key has.
  virtual void set_missing(const std::string& /*why*/, void* /*value*/) const {}
  virtual bool may_be_unknown() const { return false; }
  /// The value without what says whether it is known; null where it is not.
  virtual const void* known(const void* value) const { return value; }
};

/// A boolean, a number or a text.
enum class Scalar { boolean, whole, number, text };

class ScalarShape : public Shape {
 public:
  explicit ScalarShape(Scalar scalar) : scalar_(scalar) {}
  Json schema(const Field& field) const final;

 protected:
  /// Throws RecordFault where it is of another type or outside the field's limits.
  void check(JsonReader& reader, const Field& field, const Json& json) const;

 private:
  Scalar scalar_;
};

template <typename T>
class ScalarOf final : public ScalarShape {
 public:
  ScalarOf()
      : ScalarShape(std::same_as<T, bool>    ? Scalar::boolean
                    : std::integral<T>       ? Scalar::whole
                    : std::floating_point<T> ? Scalar::number
                                             : Scalar::text) {}
  Json write(JsonWriter&, const Field&, const void* value) const override {
    return Json(*static_cast<const T*>(value));
  }
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override {
    check(reader, field, json);
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      if (json.is_number_float())
        return static_cast<void>(*static_cast<T*>(value) = static_cast<T>(json.get<double>()));
    *static_cast<T*>(value) = json.get<T>();
  }
};

/// One of an enumeration's names.
class NameShape : public Shape {
 public:
  explicit NameShape(std::span<const std::string_view> names) : names_(names) {}
  Json schema(const Field& field) const final;

 protected:
  /// The place of the name. Throws RecordFault where it is none.
  std::size_t find(JsonReader& reader, const Field& field, const Json& json) const;
  std::span<const std::string_view> names_;
};

template <Named E>
class NameOf final : public NameShape {
 public:
  NameOf() : NameShape(kNames) {}
  Json write(JsonWriter&, const Field&, const void* value) const override {
    return Json(names_[static_cast<std::size_t>(*static_cast<const E*>(value))]);
  }
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override {
    *static_cast<E*>(value) = static_cast<E>(find(reader, field, json));
  }

 private:
  static constexpr auto kNames = names_of(E{});
};

/// Any JSON, as it is.
class AnyShape final : public Shape {
 public:
  Json write(JsonWriter&, const Field&, const void* value) const override {
    return *static_cast<const Json*>(value);
  }
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
};

/// Objects whose keys are described.
class ObjectShape final : public Shape {
 public:
  explicit ObjectShape(const Fields& (*fields)()) : fields_(fields) {}
  Json write(JsonWriter& writer, const Field& field, const void* value) const override;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
  const Fields* fields() const override { return &fields_(); }

 private:
  const Fields& (*fields_)();
};

/// What a shape is made of another one of.
class OuterShape : public Shape {
 public:
  explicit OuterShape(const Shape& inner) : inner_(inner) {}
  const Fields* fields() const final { return inner_.fields(); }

 protected:
  const Shape& inner_;
};

class ListShape : public OuterShape {
 public:
  using OuterShape::OuterShape;
  Json write(JsonWriter& writer, const Field& field, const void* value) const override;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
  std::string path() const override { return "[]" + inner_.path(); }

 protected:
  virtual std::size_t count(const void* list) const = 0;
  virtual const void* item(const void* list, std::size_t i) const = 0;
  /// Makes `count` items; nullptr where a list has another size.
  virtual bool resize(void* list, std::size_t count) const = 0;
  virtual void* item(void* list, std::size_t i) const = 0;
  virtual std::size_t fixed() const { return 0; }
};

template <typename T>
class VectorOf final : public ListShape {
 public:
  VectorOf() : ListShape(shape_of<T>()) {}

 protected:
  using V = std::vector<T>;
  std::size_t count(const void* list) const override { return static_cast<const V*>(list)->size(); }
  const void* item(const void* list, std::size_t i) const override {
    return &(*static_cast<const V*>(list))[i];
  }
  bool resize(void* list, std::size_t count) const override {
    V& vector = *static_cast<V*>(list);
    vector.clear();
    vector.resize(count);
    return true;
  }
  void* item(void* list, std::size_t i) const override { return &(*static_cast<V*>(list))[i]; }
};

template <typename T, std::size_t N>
class ArrayOf final : public ListShape {
 public:
  ArrayOf() : ListShape(shape_of<T>()) {}

 protected:
  using A = std::array<T, N>;
  std::size_t count(const void*) const override { return N; }
  const void* item(const void* list, std::size_t i) const override {
    return &(*static_cast<const A*>(list))[i];
  }
  bool resize(void*, std::size_t count) const override { return count == N; }
  void* item(void* list, std::size_t i) const override { return &(*static_cast<A*>(list))[i]; }
  std::size_t fixed() const override { return N; }
};

/// Lists of numbers, without a call for each: step times are the bulk of a record.
class NumbersShape final : public Shape {
 public:
  Json write(JsonWriter& writer, const Field& field, const void* value) const override;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
};

/// [lo, hi]
class IntervalShape final : public Shape {
 public:
  Json write(JsonWriter& writer, const Field& field, const void* value) const override;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
};

class MapShape : public OuterShape {
 public:
  using OuterShape::OuterShape;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const override;
  Json schema(const Field& field) const override;
  std::string path() const override { return ".*" + inner_.path(); }

 protected:
  Json write_entry(JsonWriter& writer, const Field& field, const std::string& key,
                   const void* value) const;
  virtual void clear(void* map) const = 0;
  virtual void* add(void* map, const std::string& key) const = 0;
};

/// Of std::map and Entries.
template <typename Map, typename T>
class MapOf final : public MapShape {
 public:
  MapOf() : MapShape(shape_of<T>()) {}
  Json write(JsonWriter& writer, const Field& field, const void* value) const override {
    Json object = Json::object();
    for (const auto& [key, part] : *static_cast<const Map*>(value))
      object[key] = write_entry(writer, field, key, &part);
    return object;
  }

 protected:
  void clear(void* map) const override { static_cast<Map*>(map)->clear(); }
  void* add(void* map, const std::string& key) const override {
    if constexpr (requires(Map & m) { m[key]; })
      return &(*static_cast<Map*>(map))[key];
    else
      return &static_cast<Map*>(map)->emplace_back(key, T{}).second;
  }
};

/// What may be null: with a reason (Known) or without (std::optional).
class NullableShape : public OuterShape {
 public:
  using OuterShape::OuterShape;
  Json write(JsonWriter& writer, const Field& field, const void* value) const final;
  void read(JsonReader& reader, const Field& field, const Json& json, void* value) const final;
  Json schema(const Field& field) const final;
  std::string path() const final { return inner_.path(); }
  bool may_be_unknown() const final { return true; }
  const void* known(const void* value) const final { return get(value); }

 protected:
  virtual const void* get(const void* value) const = 0;         ///< null where there is none
  virtual const std::string* why(const void* value) const = 0;  ///< null without reasons
  virtual void* emplace(void* value) const = 0;
};

template <typename T>
class KnownOf final : public NullableShape {
 public:
  KnownOf() : NullableShape(shape_of<T>()) {}
  void set_missing(const std::string& why, void* value) const override {
    *static_cast<Known<T>*>(value) = Unknown{why};
  }

 protected:
  const void* get(const void* value) const override {
    const auto& known = *static_cast<const Known<T>*>(value);
    return known ? &*known : nullptr;
  }
  const std::string* why(const void* value) const override {
    return &static_cast<const Known<T>*>(value)->why();
  }
  void* emplace(void* value) const override { return &static_cast<Known<T>*>(value)->emplace(); }
};

template <typename T>
class OptionalOf final : public NullableShape {
 public:
  OptionalOf() : NullableShape(shape_of<T>()) {}
  void set_missing(const std::string&, void* value) const override {
    static_cast<std::optional<T>*>(value)->reset();
  }

 protected:
  const void* get(const void* value) const override {
    const auto& optional = *static_cast<const std::optional<T>*>(value);
    return optional ? &*optional : nullptr;
  }
  const std::string* why(const void*) const override { return nullptr; }
  void* emplace(void* value) const override {
    return &static_cast<std::optional<T>*>(value)->emplace();
  }
};

template <typename T>
struct ShapeOf {
  static const Shape& get() {
    static const ObjectShape shape(&fields_of<T>);
    return shape;
  }
};
/// The one object of a shape.
template <typename S>
struct SharedShape {
  static const Shape& get() {
    static const S shape;
    return shape;
  }
};
template <typename T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string>
struct ShapeOf<T> : SharedShape<ScalarOf<T>> {
};
template <Named E>
struct ShapeOf<E> : SharedShape<NameOf<E>> {};
template <>
struct ShapeOf<Json> : SharedShape<AnyShape> {};
template <>
struct ShapeOf<Interval> : SharedShape<IntervalShape> {};
template <>
struct ShapeOf<std::vector<double>> : SharedShape<NumbersShape> {};
template <typename T>
struct ShapeOf<std::vector<T>> : SharedShape<VectorOf<T>> {};
template <typename T, std::size_t N>
struct ShapeOf<std::array<T, N>> : SharedShape<ArrayOf<T, N>> {};
template <typename T>
struct ShapeOf<Entries<T>> : SharedShape<MapOf<Entries<T>, T>> {};
template <typename T>
struct ShapeOf<std::map<std::string, T>> : SharedShape<MapOf<std::map<std::string, T>, T>> {};
template <typename T>
struct ShapeOf<Known<T>> : SharedShape<KnownOf<T>> {};
template <typename T>
struct ShapeOf<std::optional<T>> : SharedShape<OptionalOf<T>> {};

template <typename T>
const Shape& shape_of() {
  return ShapeOf<T>::get();
}

}  // namespace scalemark
