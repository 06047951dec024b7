#include "traces/format/json_place.h"

#include <vector>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

using nlohmann::json;

// Follows the parser: one entry per open array (its next index) or open object (its current key).
class Place {
 public:
  void on_event(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        open_.push_back({true, 0, ""});
        break;
      case json::parse_event_t::array_start:
        open_.push_back({false, 0, ""});
        break;
      case json::parse_event_t::key:
        open_.back().key = parsed.get<std::string>();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        open_.pop_back();
        value_done();
        break;
      case json::parse_event_t::value:
        value_done();
        break;
    }
  }

  std::string pointer() const {
    json::json_pointer pointer;
    for (const Level& level : open_) {
      if (!level.object) {
        pointer /= level.index;
      } else if (!level.key.empty()) {
        pointer /= level.key;
      }
    }
    return pointer.to_string();
  }

 private:
  struct Level {
    bool object;
    std::size_t index;
    std::string key;
  };
  void value_done() {
    if (open_.empty()) return;
    if (open_.back().object) {
      open_.back().key.clear();
    } else {
      ++open_.back().index;
    }
  }
  std::vector<Level> open_;
};

}  // namespace

json parse_json(const std::string& text, const std::string& file, const std::string& hint) {
  Place place;
  const auto follow = [&place](int /*depth*/, json::parse_event_t event, json& parsed) {
    place.on_event(event, parsed);
    return true;
  };
  try {
    return json::parse(text, follow);
  } catch (const json::parse_error& error) {
    if (error.byte > text.size()) {
      throw InputError(
          file, place.pointer(),
          "the file ends in the middle, after " + std::to_string(text.size()) + " bytes", hint);
    }
    throw InputError(file, place.pointer(),
                     "is not JSON: unexpected text at byte " + std::to_string(error.byte), hint);
  } catch (const json::exception&) {  // a number outside the range of double
    throw InputError(file, place.pointer(), "a number is out of range", hint);
  }
}

}  // namespace polyphony::traces
