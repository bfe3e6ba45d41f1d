/// The JSON header of a safetensors file and the index of a sharded one, read strictly.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/io/dequantize.hpp"
#include "typeformer/io/json_events.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/stored_tensor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io::detail {

/// {"__metadata__": {string: string}, NAME: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...}
class SafetensorsHeader : public JsonEvents {
 public:
  explicit SafetensorsHeader(const std::filesystem::path& path) : JsonEvents("read_safetensors", path) {}

  /// In the file's order, without their bytes yet.
  std::vector<StoredTensor> tensors;
  /// data_offsets of each tensor.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> offsets;
  std::vector<std::pair<std::string, std::string>> metadata;
  bool has_metadata = false;

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::before:
        return go(Place::file);
      case Place::metadata_begin:
        return go(Place::metadata);
      case Place::tensor_begin:
        return go(Place::tensor);
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    switch (place_) {
      case Place::file:
        return go(Place::after);
      case Place::metadata:
        return go(Place::file);
      case Place::tensor:
        return finish_tensor();
      default:
        return unexpected("the end of the object");
    }
  }

  bool key(string_t& name) override {
    switch (place_) {
      case Place::file:
        return name == "__metadata__" ? begin_metadata() : begin_tensor(name);
      case Place::metadata:
        metadata.emplace_back(std::move(name), std::string());
        return go(Place::metadata_value);
      case Place::tensor:
        return begin_field(name);
      default:
        return unexpected("the key " + quote_name(name));
    }
  }

  bool string(string_t& text) override {
    switch (place_) {
      case Place::metadata_value:
        metadata.back().second = std::move(text);
        return go(Place::metadata);
      case Place::dtype: {
        StoredTensor& tensor = tensors.back();
        tensor.format = safetensors_format(text);
        if (tensor.format == nullptr) refuse(field("dtype"), "a dtype of the safetensors format", quote_name(text));
        return go(Place::tensor);
      }
      default:
        return unexpected("the string " + quote_name(text));
    }
  }

  bool start_array(std::size_t) override {
    switch (place_) {
      case Place::shape_begin:
        return go(Place::shape);
      case Place::offsets_begin:
        return go(Place::offsets);
      default:
        return unexpected("an array");
    }
  }

  bool number_unsigned(number_unsigned_t value) override {
    switch (place_) {
      case Place::shape:
        tensors.back().shape.push_back(value);
        return true;
      case Place::offsets: {
        if (offsets_seen_ == 2) refuse(field("data_offsets"), "two numbers", "more");
        (offsets_seen_++ == 0 ? offsets.back().first : offsets.back().second) = value;
        return true;
      }
      default:
        return unexpected(std::to_string(value));
    }
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_seen_ != 2)
      refuse(field("data_offsets"), "two numbers", std::to_string(offsets_seen_));
    return go(Place::tensor);
  }

 private:
  /// What was read last decides what may follow.
  enum class Place : std::size_t {
    before,
    file,
    metadata_begin,
    metadata,
    metadata_value,
    tensor_begin,
    tensor,
    dtype,
    shape_begin,
    shape,
    offsets_begin,
    offsets,
    after
  };

  bool go(Place place) {
    place_ = place;
    return true;
  }

  bool begin_metadata() {
    if (has_metadata) refuse("__metadata__", "one entry", "several");
    has_metadata = true;
    return go(Place::metadata_begin);
  }

  bool begin_tensor(string_t& name) {
    tensors.emplace_back().name = std::move(name);
    offsets.emplace_back();
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_seen_ = 0;
    return go(Place::tensor_begin);
  }

  bool begin_field(const string_t& name) {
    if (name == "dtype") return begin_field(has_dtype_, name, Place::dtype);
    if (name == "shape") return begin_field(has_shape_, name, Place::shape_begin);
    if (name == "data_offsets") return begin_field(has_offsets_, name, Place::offsets_begin);
    refuse(field("fields"), "dtype, shape and data_offsets only", quote_name(name));
  }
  bool begin_field(bool& seen, const string_t& name, Place place) {
    if (seen) refuse(field(name), "one", "several");
    seen = true;
    return go(place);
  }

  bool finish_tensor() {
    if (!has_dtype_) refuse(field("dtype"), "a string", "nothing");
    if (!has_shape_) refuse(field("shape"), "an array", "nothing");
    if (!has_offsets_) refuse(field("data_offsets"), "an array", "nothing");
    return go(Place::file);
  }

  std::string field(const std::string& name) const { return name + " of tensor " + quote_name(tensors.back().name); }

  bool unexpected(const std::string& got) override {
    switch (place_) {
      case Place::before:
        refuse("header", "an object", got);
      case Place::metadata_begin:
        refuse("__metadata__", "an object", got);
      case Place::metadata_value:
        refuse("__metadata__ " + quote_name(metadata.back().first), "a string", got);
      case Place::tensor_begin:
        refuse("tensor " + quote_name(tensors.back().name), "an object", got);
      case Place::dtype:
        refuse(field("dtype"), "a string", got);
      case Place::shape_begin:
        refuse(field("shape"), "an array", got);
      case Place::shape:
        refuse(field("shape"), "integers from 0 to 2^64 - 1", got);
      case Place::offsets_begin:
        refuse(field("data_offsets"), "an array", got);
      case Place::offsets:
        refuse(field("data_offsets"), "integers from 0 to 2^64 - 1", got);
      default:
        refuse("header", "one object", got);
    }
  }

  Place place_ = Place::before;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_seen_ = 0;
};

/// {"metadata": anything, "weight_map": {NAME: FILE}}: which tensor lies in which file of the folder.
class SafetensorsIndex : public JsonEvents {
 public:
  explicit SafetensorsIndex(const std::filesystem::path& path) : JsonEvents("read_safetensors", path) {}

  /// Tensor, file; in the index's order.
  std::vector<std::pair<std::string, std::string>> weight_map;
  bool has_weight_map = false;

  bool start_object(std::size_t) override { return open("an object", true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open("an array", false); }
  bool end_array() override { return close(); }
  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& digits) override { return scalar(quote_name(digits)); }

  bool key(string_t& name) override {
    if (depth_ == 2 && in_map_) {
      weight_map.emplace_back(std::move(name), std::string());
    } else if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(has_weight_map, true)) refuse("weight_map", "one", "several");
    }
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ != 2 || !in_map_) return scalar("the string " + quote_name(text));
    weight_map.back().second = std::move(text);
    return true;
  }

 private:
  bool open(const std::string& what, bool is_object) {
    if (depth_ == 0 && !is_object) return unexpected(what);
    if (in_map_ && (depth_ != 1 || !is_object)) return unexpected(what);
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    if (depth_ == 1) in_map_ = false;
    return true;
  }
  bool scalar(const std::string& what) { return depth_ == 0 || in_map_ ? unexpected(what) : true; }

  bool unexpected(const std::string& got) override {
    if (depth_ == 0) refuse("index", "an object", got);
    if (depth_ == 1) refuse("weight_map", "an object", got);
    refuse("weight_map " + quote_name(weight_map.back().first), "a file name", got);
  }

  std::size_t depth_ = 0;
  bool in_map_ = false;
};

}  // namespace typeformer
