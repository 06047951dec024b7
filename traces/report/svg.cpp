#include "traces/report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

struct Colour {
  const char* name;
  const char* light;
  const char* dark;
};
// Hues: Okabe & Ito's order (distinct for color-blind readers), adjusted for contrast on both
// backgrounds.
constexpr std::array kColours = {
    Colour{"ground", "#ffffff", "#151a23"},        Colour{"ink", "#1b2433", "#e7eaf0"},
    Colour{"muted", "#5d6b80", "#9aa5b8"},         Colour{"grid", "#e1e5ec", "#2b3342"},
    Colour{"row", "#eef1f5", "#222936"},           Colour{"forward", "#2f6fd6", "#4b86e6"},
    Colour{"forward-tint", "#9cc3f5", "#a9c9f6"},  Colour{"backward", "#dd7a00", "#e8912b"},
    Colour{"backward-tint", "#f8c880", "#f5cf94"}, Colour{"weight", "#b05a00", "#c06d17"},
    Colour{"recompute", "#8459d6", "#9a76e4"},     Colour{"recompute-tint", "#cbb8f2", "#cfc0f1"},
    Colour{"optimizer", "#0f9d72", "#2fb98e"},     Colour{"optimizer-tint", "#9fdcc6", "#a6dfcb"},
    Colour{"exchange-tint", "#a5dbe6", "#abdfe9"}, Colour{"reduce-tint", "#f0b3c4", "#f0b8c7"},
    Colour{"wait", "#b3bccb", "#98a3b6"},          Colour{"wait-tint", "#d9dee6", "#6f7b91"},
    Colour{"exchange", "#0a9bb5", "#35b8d0"},      Colour{"reduce", "#d1335b", "#e4587b"},
    Colour{"on-full", "#ffffff", "#ffffff"},       Colour{"on-tint", "#1b2433", "#151a23"},
};

// $name is replaced by a color.
constexpr const char* kRules =
    "\n"
    R"(.plot text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;)"
    R"(font-size:11px;fill:$muted}
.plot .title{font-size:13px;font-weight:600;fill:$ink}
.plot .rank{fill:$ink}
.plot .end{text-anchor:end}
.plot .mid{text-anchor:middle}
.plot .box{font-size:10px;text-anchor:middle;pointer-events:none;fill:$on-full}
.plot .box.tint{fill:$on-tint}
.plot .value{font-size:10px;text-anchor:middle;fill:$muted}
.plot .row{fill:$row}
.plot .grid{stroke:$grid;stroke-width:1}
.plot .axis{stroke:$muted;stroke-width:1}
.plot .finish{stroke:$ink;stroke-width:1;stroke-dasharray:3 3}
.plot .level{stroke:$reduce;stroke-width:1.2;stroke-dasharray:5 4}
.plot .blocked{opacity:0.28}
.plot .forward{fill:$forward}
.plot .forward.tint{fill:$forward-tint}
.plot .backward{fill:$backward}
.plot .backward.tint{fill:$backward-tint}
.plot .weight{fill:$weight}
.plot .recompute{fill:$recompute}
.plot .recompute.tint{fill:$recompute-tint}
.plot .optimizer{fill:$optimizer}
.plot .optimizer.tint{fill:$optimizer-tint}
.plot .exchange{fill:$exchange}
.plot .exchange.tint{fill:$exchange-tint}
.plot .reduce{fill:$reduce}
.plot .reduce.tint{fill:$reduce-tint}
.plot .wait{fill:$wait}
.plot .wait.tint{fill:$wait-tint}
.plot .op{stroke:$ground;stroke-width:0.6}
.plot .curve{fill:none;stroke-width:1.8;stroke-linejoin:round}
.plot .hollow{fill:$ground;stroke-width:1.5}
.plot .whisker{stroke-width:1.2;opacity:0.4}
.plot .front{fill:none;stroke:$ink;stroke-width:1.2;stroke-dasharray:4 3}
.plot .beside{fill:$ink}
.plot .on{fill:$ink;stroke:$ground;stroke-width:3px;paint-order:stroke}
.plot .broad{stroke-width:6;opacity:0.45}
.plot .strong{font-weight:600}
.plot .cell{font-size:12px;text-anchor:middle;fill:$ink}
.plot .cell.tint{fill:$on-tint}
.plot .s0{stroke:$forward}
.plot .s1{stroke:$backward}
.plot .s2{stroke:$optimizer}
.plot .s3{stroke:$recompute}
.plot .s4{stroke:$reduce}
.plot .s5{stroke:$exchange}
.plot .b0{fill:$forward}
.plot .b1{fill:$backward}
.plot .b2{fill:$optimizer}
.plot .b3{fill:$recompute}
.plot .b4{fill:$reduce}
.plot .b5{fill:$exchange}
)";

const char* colour(const Colour& entry, Theme theme) {
  return theme == Theme::dark ? entry.dark : entry.light;
}

}  // namespace

std::string escape(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // Control characters are not allowed in XML.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

std::string svg_style(Theme theme) {
  std::string style;
  const std::string rules = kRules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i] != '$') {
      style += rules[i];
      continue;
    }
    const std::size_t end = rules.find_first_of(";}", i);
    const std::string name = rules.substr(i + 1, end - i - 1);
    if (theme == Theme::page) {
      style += "var(--" + name + ")";
    } else {
      const auto found = std::find_if(kColours.begin(), kColours.end(),
                                      [&](const Colour& entry) { return name == entry.name; });
      style += colour(*found, theme);
    }
    i = end - 1;
  }
  return style;
}

std::string theme_variables(Theme theme) {
  std::string result;
  for (const Colour& entry : kColours)
    result += std::string("--") + entry.name + ":" + colour(entry, theme) + ";";
  return result;
}

std::string svg_file(const std::string& svg, Theme theme) {
  const std::string root = "<svg ";
  const auto at = svg.find(root);
  const auto open = svg.find('>', at);
  if (at == std::string::npos || open == std::string::npos) return svg;
  return svg.substr(0, at) + "<svg xmlns=\"http://www.w3.org/2000/svg\" " +
         svg.substr(at + root.size(), open - at - root.size()) + "><style>" + svg_style(theme) +
         "</style><rect width=\"100%\" height=\"100%\" fill=\"" + colour(kColours[0], theme) +
         "\"/>" + svg.substr(open + 1);
}

std::string percent(double ratio) {
  char text[32];
  const double tenths = std::round(1000 * ratio) / 10;
  std::snprintf(text, sizeof text, tenths == 0 ? "%.1f %%" : "%+.1f %%",
                std::abs(tenths) == 0 ? 0 : tenths);
  return text;
}

}  // namespace polyphony::traces
