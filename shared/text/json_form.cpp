#include "shared/text/json_form.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "shared/text/other_words.h"

namespace polyphony {
namespace {

std::string digits(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Form integer_form(std::int64_t least, std::int64_t most) {
  Form form{.kind = Form::Kind::integer};
  form.least = least;
  form.most = most;
  return form;
}
Form number_form(double low, double high) {
  Form form{.kind = Form::Kind::number};
  form.low = low;
  form.high = high;
  return form;
}
Form boolean_form() { return {.kind = Form::Kind::boolean}; }
Form text_form(std::string example) {
  Form form{.kind = Form::Kind::text};
  form.example = std::move(example);
  return form;
}
Form quantity_form(UnitKind unit, std::string example, std::string from, std::string to) {
  Form form{.kind = Form::Kind::quantity};
  form.unit = unit;
  form.example = std::move(example);
  form.from = std::move(from);
  form.to = std::move(to);
  return form;
}
Form choice_form(std::vector<std::string> choices) {
  Form form{.kind = Form::Kind::choice};
  form.choices = std::move(choices);
  return form;
}
Form list_form(Form element, std::int64_t least, std::int64_t most) {
  Form form{.kind = Form::Kind::list};
  form.least = least;
  form.most = most;
  form.of.push_back(std::move(element));
  return form;
}
Form object_form(const ObjectForm& object) {
  Form form{.kind = Form::Kind::object};
  form.object = &object;
  return form;
}
Form change_form(const ObjectForm& object) {
  Form form = object_form(object);
  form.change = true;
  return form;
}
Form any_form(std::vector<Form> alternatives) {
  Form form{.kind = Form::Kind::any_of};
  form.of = std::move(alternatives);
  return form;
}

std::string wanted(const Form& form) {
  switch (form.kind) {
    case Form::Kind::integer:
      if (form.most == std::numeric_limits<std::int32_t>::max())
        return "a whole number, at least " + std::to_string(form.least);
      return "a whole number from " + std::to_string(form.least) + " to " +
             std::to_string(form.most);
    case Form::Kind::number:
      return "a number from " + digits(form.low) + " to " + digits(form.high);
    case Form::Kind::boolean:
      return "true or false";
    case Form::Kind::text:
      return "a text such as \"" + form.example + "\"";
    case Form::Kind::quantity:
      return std::string(name(form.unit)) + " with its unit, such as \"" + form.example + "\"";
    case Form::Kind::choice:
      return "one of " + joined(form.choices);
    case Form::Kind::list:
      return "a list of values, each " + wanted(form.of.front());
    case Form::Kind::object:
      return "an object { … }";
    case Form::Kind::any_of: {
      std::string text;
      for (const Form& one : form.of) text += (text.empty() ? "" : ", or ") + wanted(one);
      return text;
    }
  }
  return "?";
}

namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.size() > 64) return {};
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    // Levenshtein's distance, one row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t above = row[j + 1];
        row[j + 1] = std::min(
            {above + 1, row[j] + 1, diagonal + (same_letter(word[i], candidate[j]) ? 0U : 1U)});
        diagonal = above;
      }
    }
    const std::size_t distance = row.back();
    if (distance > std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3)) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest(const std::string& word, const std::vector<std::string>& candidates) {
  if (std::string hint = hint_for_other_word(word, candidates); !hint.empty()) return hint;
  const std::string near = nearest(word, candidates);
  // "hgx-a100" means hgx-a100-40 or hgx-a100-80 rather than hgx-h100.
  std::string longer;
  std::size_t begins = 0;
  for (const std::string& candidate : candidates)
    if (candidate.starts_with(word)) {
      longer += (begins++ == 0 ? "\"" : " or \"") + candidate + "\"";
    }
  constexpr std::size_t kMostNamed = 3;
  if (begins > 0 && begins <= kMostNamed && !near.starts_with(word))
    return "did you mean " + longer + "?";
  return near.empty() ? "one of: " + joined(candidates) : "did you mean \"" + near + "\"?";
}

}  // namespace polyphony
