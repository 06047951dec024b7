#include "sim/pages/sweep_page.h"

#include "shared/text/figure_text.h"
#include "sim/pages/sweep_figures.h"

namespace polyphony::sim {
namespace {

std::string change_text(const SearchedRow& row) {
  return row.change ? signed_whole(*row.change) + " %" : "";
}
std::string interval_text(const SearchedRow& row) {
  if (!row.interval) return "";
  return seconds_text(row.interval->first) + " to " + seconds_text(row.interval->second);
}
std::string tokens_text(const SearchedRow& row) {
  return count_text(static_cast<std::int64_t>(row.tokens_per_second_per_rank));
}
// Empty: not known.
std::string utilization_text(const SearchedRow& row) {
  return row.utilization > 0 ? percent_text(row.utilization) : "";
}
std::string price_text(const SearchedRow& row) {
  return row.dollars ? number_text(*row.dollars, 4) : "";
}
// "70.2 GiB of 78.5 GiB".
std::string memory_text(const Searched& answer, const SearchedRow& row) {
  return bytes_text(row.memory) + (answer.device ? " of " + bytes_text(*answer.device) : "");
}

std::string against(const Searched& answer) {
  return answer.baselines.empty() ? "" : "compared with the " + answer.baselines.front().name;
}

traces::Table ranking(const Searched& answer) {
  const std::vector<SearchedRow>& ranked = answer.ranked;
  const std::vector<std::size_t> shown = rows_shown(ranked);
  const bool prices = !price_text(ranked.front()).empty();
  traces::Table table{
      "",
      {"row", "step time", "90 % interval", against(answer), "tokens/s/GPU", "MFU", "memory"},
      {},
      0,
      ""};
  if (prices) table.columns.emplace_back("$ per million tokens");
  table.columns.emplace_back("layout");
  table.texts = 1;
  const auto add = [&](const std::string& place, const SearchedRow& row, const std::string& words) {
    std::vector<std::string> cells{place,
                                   step_text(row),
                                   interval_text(row),
                                   change_text(row),
                                   tokens_text(row),
                                   utilization_text(row),
                                   bytes_text(row.memory)};
    if (prices) cells.push_back(price_text(row));
    cells.push_back(words);
    table.rows.push_back(std::move(cells));
  };
  for (const std::size_t i : shown) add(std::to_string(i + 1), ranked[i], ranked[i].words);
  for (const SearchedRow& row : answer.baselines) add("", row, row.name + ": " + row.words);
  table.note = std::to_string(shown.size()) + " of " +
               counted(static_cast<std::int64_t>(ranked.size()), "row", "rows") +
               ": others differ from an earlier one only in details, such as recomputation or ZeRO "
               "groups, or come after the first " +
               std::to_string(kMostRows) +
               "; the best row of each placement is always shown. ~: estimated, others are "
               "simulated. The 90 % interval is "
               "that of the step time, by profile " +
               answer.profile + " and software stack " + answer.stack +
               ". Memory: of the fullest rank. SP: sequence parallelism; ZeRO-1, 2, 3: optimizer "
               "state, gradients, parameters sharded over DP.";
  return table;
}

// What to run, and what to measure first.
std::string decision(const Searched& answer) {
  if (answer.tied <= 1)
    return "Row 1 is faster than every other row by more than the prediction is uncertain.";
  const std::string simplest = "row " + std::to_string(answer.simplest + 1);
  return count_text(answer.tied) + " of " +
         counted(static_cast<std::int64_t>(answer.ranked.size()), "row", "rows") +
         " are tied with the best: the 90 % interval of the difference in step time contains zero. "
         "The simplest of those within 2 % of the best is " +
         simplest + ": " + answer.ranked.at(answer.simplest).words +
         ". Measure a few steps of it before a long run.";
}

traces::Section which_layout(const Searched& answer) {
  traces::Section section{"Ranking", {traces::Paragraph{decision(answer)}, ranking(answer)}};
  if (answer.question && !answer.question->accuracy.empty())
    section.blocks.emplace_back(traces::Paragraph{"How accurate: " + answer.question->accuracy});
  for (const std::string& line : answer.notes) section.blocks.emplace_back(traces::Paragraph{line});
  return section;
}

// How far the search went.
traces::Section how_it_was_found(const Searched& answer) {
  traces::Section section{
      "How it was searched",
      {traces::Paragraph{count_text(static_cast<std::int64_t>(answer.combinations)) +
                         " combinations: " + count_text(answer.legal) +
                         " legal ones checked one by one, " + count_text(answer.too_large) +
                         " need too much memory, " + count_text(answer.screened_by_bound) +
                         " are ruled out by a lower bound of their step time; " +
                         count_text(answer.estimated) + " estimated, " +
                         count_text(answer.simulated) + " simulated."}}};
  for (const auto& [placement, gap] : answer.gaps)
    section.blocks.emplace_back(traces::Paragraph{
        placement + (gap > 0
                         ? ": a layout that the search did not reach could be up to " +
                               percent_text(gap) + " faster than the best row."
                         : ": no layout of the searched combinations has a smaller estimate.")});
  for (const std::string& line : answer.why) section.blocks.emplace_back(traces::Paragraph{line});
  return section;
}

std::vector<traces::Fact> facts_of(const Searched& answer) {
  std::vector<traces::Fact> facts;
  if (answer.ranked.empty()) return facts;
  const SearchedRow& best = answer.ranked.front();
  facts.push_back({step_text(best), interval_text(best).empty()
                                        ? "step time of row 1"
                                        : "step time of row 1; 90 %: " + interval_text(best)});
  facts.push_back({tokens_text(best), "tokens/s/GPU"});
  if (const std::string mfu = utilization_text(best); !mfu.empty()) facts.push_back({mfu, "MFU"});
  facts.push_back({memory_text(answer, best), "memory of the fullest rank"});
  if (const std::string price = price_text(best); !price.empty())
    facts.push_back({price + " $", "per million tokens"});
  if (best.change) facts.push_back({change_text(best), against(answer)});
  return facts;
}

// "h100.json; vision 631M + language 7.6B; 8 nodes × 8 H100; …".
std::string subtitle(const Searched& answer, const std::string& question) {
  std::string text = question;
  if (answer.question)
    for (const std::string* words : {&answer.question->model, &answer.question->cluster,
                                     &answer.question->data, &answer.question->software})
      text += "; " + *words;
  return text;
}

traces::Report page(const char* title, const std::string& subtitle_,
                    std::vector<traces::Section> sections) {
  return {title,
          subtitle_,
          {},
          std::move(sections),
          "Made by `polyphony sweep`; nothing is loaded from elsewhere."};
}

}  // namespace

std::vector<traces::Section> sweep_sections(const Searched& answer) {
  if (answer.ranked.empty()) return {{"Which layout", {traces::Paragraph{"No layout fits."}}}};
  return {which_layout(answer),
          {"Where the step time goes", {breakdown_figure(answer)}},
          {"Time and memory", {time_and_memory_figure(answer)}},
          how_it_was_found(answer)};
}

traces::Report sweep_page(const Searched& answer, const std::string& question) {
  traces::Report made =
      page("Which parallel layout is fastest", subtitle(answer, question), sweep_sections(answer));
  made.facts = facts_of(answer);
  return made;
}

traces::Report vary_page(const SearchedVaried& answer, const std::string& question) {
  return page("Where the best layout changes", question, vary_sections(answer));
}

}  // namespace polyphony::sim
