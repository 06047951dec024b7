// A value of a tokenizer.json with its place, read by key and type. Only *_json.cpp files include
// this.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/text/json_form.h"
#include "shared/tokenizer/place.h"

namespace polyphony::tokenizing {

class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, Place place) : value_(&value), place_(std::move(place)) {}

  const Place& place() const { return place_; }
  const nlohmann::json& raw() const { return *value_; }
  bool has(const std::string& key) const {
    return value_->is_object() && value_->contains(key) && !(*value_)[key].is_null();
  }
  JsonNode at(const std::string& key) const {
    if (!has(key)) place_.refuse("must have \"" + key + "\"", "add it");
    return {(*value_)[key], place_.at(key)};
  }
  JsonNode at(std::size_t index) const { return {(*value_)[index], place_.at(index)}; }
  std::size_t size() const { return value_->size(); }

  // Refuses every key that is not listed: what is not known would be ignored.
  const JsonNode& only(std::initializer_list<const char*> keys) const {
    need(value_->is_object(), "an object");
    for (const auto& [key, unused] : value_->items()) {
      bool known = false;
      for (const char* const one : keys) known = known || key == one;
      if (!known)
        place_.at(key).refuse("is not supported", "remove it if the tokenizer does without");
    }
    return *this;
  }
  const JsonNode& list() const {
    need(value_->is_array(), "a list");
    return *this;
  }
  const std::string& text() const {
    need(value_->is_string(), "a text");
    return value_->get_ref<const std::string&>();
  }
  bool boolean() const {
    need(value_->is_boolean(), "true or false");
    return value_->get<bool>();
  }
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const std::string wanted =
        "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    need(value_->is_number_integer(), wanted);
    if (value_->is_number_unsigned() &&
        value_->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
      need(false, wanted);
    const auto number = value_->get<std::int64_t>();
    need(number >= least && number <= most, wanted);
    return number;
  }
  double number() const {
    need(value_->is_number(), "a number");
    return value_->get<double>();
  }
  bool boolean(const std::string& key, bool otherwise) const {
    return has(key) ? at(key).boolean() : otherwise;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? at(key).text() : otherwise;
  }

 private:
  void need(bool holds, const std::string& wanted) const {
    if (holds) return;
    std::string got = value_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (got.size() > 40) got = got.substr(0, 40) + "…";
    place_.refuse("must be " + wanted + " (got " + got + ")",
                  "use the tokenizer.json as it was published");
  }

  const nlohmann::json* value_;
  Place place_;
};

}  // namespace polyphony::tokenizing
