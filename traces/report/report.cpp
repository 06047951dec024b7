#include "traces/report/report.h"

#include <algorithm>

#include "traces/report/svg.h"

namespace polyphony::traces {
namespace {

constexpr const char* kPageStyle =
    R"(
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);)"
    R"(font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main,header,footer{max-width:1280px;margin:0 auto;padding:0 28px}
header{padding-top:36px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-0.01em}
h2{font-size:19px;margin:44px 0 12px;padding-top:14px;border-top:1px solid var(--grid)}
.subtitle{color:var(--muted);margin:0;max-width:110ch}
.facts{display:flex;flex-wrap:wrap;gap:12px;margin:24px 0 4px}
.fact{background:var(--row);border-radius:10px;padding:12px 18px;min-width:130px}
.fact b{display:block;font-size:21px;line-height:1.25;font-variant-numeric:tabular-nums}
.fact span{color:var(--muted);font-size:13px}
nav{margin:18px 0 0;font-size:14px}
nav a{color:var(--forward);text-decoration:none;margin-right:18px;white-space:nowrap}
nav a:hover{text-decoration:underline}
p{max-width:110ch;margin:10px 0}
figure{margin:18px 0}
figcaption,.note{color:var(--muted);font-size:13px;margin-top:6px;max-width:120ch}
.beside{display:grid;)"
    R"(grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:10px 32px}
.scroll{overflow-x:auto;margin:16px 0 6px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding-bottom:6px}
th,td{padding:5px 14px 5px 0;text-align:right;white-space:nowrap;)"
    R"(border-bottom:1px solid var(--grid)}
th{color:var(--muted);font-weight:500;font-size:13px}
th:first-child,td:first-child,.text{text-align:left}
tr.best td{font-weight:600;background:var(--row)}
tr.best td:first-child{box-shadow:inset 3px 0 0 var(--forward);padding-left:10px}
button{float:right;border:1px solid var(--grid);background:var(--row);color:var(--ink);)"
    R"(border-radius:8px;padding:5px 12px;font:inherit;font-size:13px;cursor:pointer}
footer{color:var(--muted);font-size:13px;margin:48px auto 32px}
svg{display:block;max-width:100%;height:auto}
.wide>svg,figure>svg{max-width:100%!important}
.narrow{display:none}
@media (max-width:640px){main,header,footer{padding:0 16px})"
    R"(.wide{display:none}.narrow{display:block}}
@media print{button,nav{display:none}section{break-inside:avoid}}
)";

// By default the system's theme is used; the button sets data-theme on the root.
constexpr const char* kSwitch =
    "var r=document.documentElement,q=window.matchMedia('(prefers-color-scheme: dark)');"
    "document.getElementById('theme').onclick=function(){"
    "var d=r.dataset.theme?r.dataset.theme==='dark':q.matches;r.dataset.theme=d?'light':'dark';};";

std::string style() {
  const std::string light = theme_variables(Theme::light);
  const std::string dark = theme_variables(Theme::dark);
  return ":root{" + light + "}\n@media (prefers-color-scheme: dark){:root{" + dark +
         "}}\n:root[data-theme=\"light\"]{" + light +
         "color-scheme:light}\n:root[data-theme=\"dark\"]{" + dark + "color-scheme:dark}" +
         kPageStyle + svg_style(Theme::page);
}

std::string anchor(std::size_t section) { return "s" + std::to_string(section + 1); }

struct BlockHtml {
  std::string operator()(const Paragraph& block) const {
    return "<p>" + escape(block.text) + "</p>\n";
  }
  std::string operator()(const Figure& block) const {
    std::string html = "<figure>";
    html += block.narrow.empty() ? block.svg
                                 : "<div class=\"wide\">" + block.svg +
                                       "</div><div class=\"narrow\">" + block.narrow + "</div>";
    if (!block.caption.empty()) html += "<figcaption>" + escape(block.caption) + "</figcaption>";
    return html + "</figure>\n";
  }
  std::string operator()(const SideBySide& block) const {
    std::string html = "<div class=\"beside\">\n";
    for (const Figure& figure : block.figures) html += (*this)(figure);
    return html + "</div>\n";
  }
  std::string operator()(const Table& block) const {
    std::string html = "<div class=\"scroll\"><table>";
    if (!block.caption.empty()) html += "<caption>" + escape(block.caption) + "</caption>";
    html += "<thead><tr>";
    const auto cell = [&](const char* tag, std::size_t c, const std::string& text) {
      const bool is_text = c > 0 && c + block.texts >= block.columns.size();
      return std::string("<") + tag + (is_text ? " class=\"text\">" : ">") + escape(text) + "</" +
             tag + ">";
    };
    for (std::size_t c = 0; c < block.columns.size(); ++c) html += cell("th", c, block.columns[c]);
    html += "</tr></thead>\n<tbody>\n";
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      html += block.highlight == r ? "<tr class=\"best\">" : "<tr>";
      for (std::size_t c = 0; c < block.rows[r].size(); ++c)
        html += cell("td", c, block.rows[r][c]);
      for (std::size_t c = block.rows[r].size(); c < block.columns.size(); ++c) html += "<td></td>";
      html += "</tr>\n";
    }
    html += "</tbody></table></div>\n";
    if (!block.note.empty()) html += "<div class=\"note\">" + escape(block.note) + "</div>\n";
    return html;
  }
};

std::string header(const Report& report) {
  std::string html = "<header>\n<button id=\"theme\" type=\"button\">Light / dark</button>\n<h1>" +
                     escape(report.title) + "</h1>\n<p class=\"subtitle\">" +
                     escape(report.subtitle) + "</p>\n";
  if (!report.facts.empty()) {
    html += "<div class=\"facts\">\n";
    for (const Fact& fact : report.facts) {
      html += "<div class=\"fact\"><b>" + escape(fact.value) + "</b><span>" + escape(fact.label) +
              "</span></div>\n";
    }
    html += "</div>\n";
  }
  if (report.sections.size() > 1) {
    html += "<nav>\n";
    for (std::size_t i = 0; i < report.sections.size(); ++i) {
      html += "<a href=\"#" + anchor(i) + "\">" + escape(report.sections[i].title) + "</a>\n";
    }
    html += "</nav>\n";
  }
  return html + "</header>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
      escape(report.title) + "</title>\n<style>\n" + style() + "</style>\n</head>\n<body>\n";
  html += header(report) + "<main>\n";
  for (std::size_t i = 0; i < report.sections.size(); ++i) {
    html +=
        "<section id=\"" + anchor(i) + "\">\n<h2>" + escape(report.sections[i].title) + "</h2>\n";
    for (const Block& block : report.sections[i].blocks) html += std::visit(BlockHtml{}, block);
    html += "</section>\n";
  }
  html += "</main>\n";
  if (!report.footer.empty()) html += "<footer>" + escape(report.footer) + "</footer>\n";
  return html + "<script>" + kSwitch + "</script>\n</body>\n</html>\n";
}

}  // namespace polyphony::traces
