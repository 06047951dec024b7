#include "shared/text/strict_json.h"

#include <doctest/doctest.h>

using namespace polyphony;

namespace {

const ObjectForm& link_form() {
  static const ObjectForm form{
      "link",
      "A link",
      {{"rate", quantity_form(UnitKind::rate, "50GBps"), "its rate", true},
       {"delay", quantity_form(UnitKind::time, "2us", "1ns", "1s"), "its latency"},
       {"lanes", integer_form(1, 16), "lanes"},
       {"load", number_form(0, 1), "share in use"},
       {"up", boolean_form(), "whether it works"},
       {"kind", choice_form({"nvlink", "pcie"}), "what it is"},
       {"sizes", any_form({integer_form(1, 9), list_form(integer_form(1, 9), 1, 3)}), "sizes"}},
      {}};
  return form;
}

std::string json_refusal(const std::string& text) {
  try {
    JsonValue::parse(text, "l.json").check(object_form(link_form()));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a form accepts what it describes, comments included") {
  const JsonValue value = JsonValue::parse(
      "{\"rate\": \"400Gbps\", // per direction\n \"sizes\": [1, 2], \"lanes\": 4}", "l.json");
  value.check(object_form(link_form()));
  BytesPerSecond rate;
  std::vector<int> sizes;
  int lanes = 0;
  bool up = true;
  CHECK(value.read("rate", rate));
  CHECK(value.read("sizes", sizes));
  CHECK(value.read("lanes", lanes));
  CHECK_FALSE(value.read("up", up));
  CHECK(rate == BytesPerSecond(50e9));
  CHECK(sizes == std::vector<int>{1, 2});
  CHECK(lanes == 4);
  CHECK(up);
}

TEST_CASE("a form rejects other values with pointer and hint") {
  CHECK(json_refusal(R"({"rate": "1GBps", "lane": 4})") ==
        R"(l.json: /lane: unknown key "lane" (did you mean "lanes"?))");
  CHECK(
      json_refusal(R"({"rate": "1GBps", "colour": 4})") ==
      R"(l.json: /colour: unknown key "colour" (one of: rate, delay, lanes, load, up, kind, sizes))");
  CHECK(
      json_refusal("{}") ==
      "l.json: key \"rate\" is missing (its rate: a data rate with its unit, such as \"50GBps\")");
  CHECK(json_refusal(R"({"rate": 50})") ==
        R"(l.json: /rate: 50 has no unit (write a data rate with its unit, such as "50GBps"))");
  CHECK(json_refusal(R"({"rate": "50GiB"})")
            .starts_with(
                R"(l.json: /rate: "50GiB" is not a data rate: unknown unit "GiB" (units: )"));
  CHECK(json_refusal(R"({"rate": "1GBps", "delay": "0us"})") ==
        R"(l.json: /delay: "0us" is out of range (at least 1ns))");
  for (const char* delay : {"1.001s", "1e300ns"})
    CHECK(json_refusal(std::string(R"({"rate": "1GBps", "delay": ")") + delay + "\"}") ==
          std::string("l.json: /delay: \"") + delay + "\" is out of range (at most 1s)");
  for (const char* delay : {"1ns", "1s", "1000ms"})
    CHECK(json_refusal(std::string(R"({"rate": "1GBps", "delay": ")") + delay + "\"}").empty());
  CHECK(json_refusal(R"({"rate": "1GBps", "lanes": 17})") ==
        "l.json: /lanes: 17 is out of range (write a whole number from 1 to 16)");
  CHECK(json_refusal(R"({"rate": "1GBps", "lanes": 4.0})") ==
        "l.json: /lanes: 4.0 is not allowed here (write a whole number from 1 to 16)");
  CHECK(json_refusal(R"({"rate": "1GBps", "lanes": 18446744073709551615})").find("out of range") !=
        std::string::npos);
  CHECK(json_refusal(R"({"rate": "1GBps", "load": -0.5})") ==
        "l.json: /load: -0.5 is out of range (write a number from 0 to 1)");
  CHECK(json_refusal(R"({"rate": "1GBps", "up": "yes"})") ==
        "l.json: /up: a text is not allowed here (write true or false)");
  CHECK(json_refusal(R"({"rate": "1GBps", "up": null})") ==
        "l.json: /up: null is not allowed here (write true or false)");
  CHECK(json_refusal(R"({"rate": "1GBps", "kind": "nvlin"})") ==
        R"(l.json: /kind: unknown value "nvlin" (did you mean "nvlink"?))");
  CHECK(json_refusal(R"({"rate": "1GBps", "sizes": []})") ==
        "l.json: /sizes: list has 0 values (it must have 1 to 3)");
  CHECK(json_refusal(R"({"rate": "1GBps", "sizes": [1, 12]})") ==
        "l.json: /sizes/1: 12 is out of range (write a whole number from 1 to 9)");
  CHECK(json_refusal(R"({"rate": "1GBps", "a/b~c": 1})")
            .starts_with("l.json: /a~1b~0c: unknown key"));  // RFC 6901
}

TEST_CASE("text that is not JSON is rejected with its line") {
  CHECK(json_refusal("{\n\"rate\": \n}")
            .starts_with("l.json: not JSON: parse error at line 3, column 1: "));
  CHECK(json_refusal(R"({"rate": "1GBps", "rate": "2GBps"})") ==
        R"(l.json: duplicate key "rate" in one object (remove one of them))");
  CHECK(json_refusal(std::string(100, '[') + std::string(100, ']')) ==
        "l.json: more than 64 levels of nesting (flatten the document)");
  CHECK(json_refusal("\"\xff\"").starts_with("l.json: not JSON: "));
  CHECK(json_refusal("").starts_with("l.json: not JSON: "));
  CHECK(json_refusal("{\"rate\": \"1GBps\"} x").starts_with("l.json: not JSON: "));
}

TEST_CASE("the same key in two sibling objects is not a duplicate") {
  CHECK_NOTHROW(
      JsonValue::parse(R"({"a": {"x": 1}, "b": {"x": 1, "c": [{"x": 1}, {"x": 2}]}})", ""));
}

TEST_CASE("merge replaces key by key, and null removes a key") {
  const JsonValue base = JsonValue::parse(R"({"a": {"x": 1, "y": 2}, "b": [1, 2]})", "base");
  const JsonValue patch = JsonValue::parse(R"({"a": {"x": null, "z": 3}, "b": [4]})", "patch");
  const JsonValue merged = JsonValue::merge(base, patch);
  CHECK(merged.at("a").keys() == std::vector<std::string>{"y", "z"});
  CHECK(merged.at("b").size() == 1);
}

TEST_CASE("suggest() finds the nearest word") {
  CHECK(nearest("vison", {"vision", "language"}) == "vision");
  CHECK(nearest("tq", {"tp", "pp"}) == "tp");
  CHECK(nearest("zebra", {"tp", "pp"}).empty());
}
