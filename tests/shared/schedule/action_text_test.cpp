// Orders as text: both forms read back as written; other text is rejected with its line.
#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/random.h"
#include "shared/schedule/action_text.h"
#include "shared/schedule/schedule.h"

using namespace polyphony;

namespace {

std::vector<Actions> orders_of(ScheduleKind kind, const Pipeline& pipeline) {
  std::vector<Actions> orders;
  for (int rank = 0; rank < pipeline.ranks; ++rank)
    orders.push_back(schedule(kind).order(pipeline, rank));
  return orders;
}

std::string complaint(const std::string& text) {
  try {
    read_orders(text, "order.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a small order, letter by letter") {
  const std::vector<Actions> orders = orders_of(ScheduleKind::one_f_one_b, {2, 1, 2});
  // Columns are start times of actions of 1 s each: rank 0's B0 waits for rank 1's from 2 to 3.
  CHECK(csv_text(orders, {{0, 1, 3, 5}, {1, 2, 3, 4}}) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  CHECK(csv_text(orders) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const std::string text = compact_text(orders);
  CHECK(text.starts_with("polyphony actions 1\nF0.0 F0.1 B0.0 B0.1\nF1.0 B1.0 F1.1 B1.1\nhash "));
  CHECK(text.size() == 20 + 20 + 20 + 5 + 16 + 1);
}

TEST_CASE("every schedule reads back") {
  for (const Schedule& row : kSchedules)
    for (const int vpp : {1, 2, 3}) {
      const Pipeline pipeline{4, vpp, 12};
      if (!row.refusal(pipeline).empty()) continue;
      CAPTURE(row.name);
      const std::vector<Actions> orders = orders_of(row.kind, pipeline);
      CHECK(read_orders(csv_text(orders), "csv") == orders);
      CHECK(read_orders(compact_text(orders), "compact") == orders);
      for (const Actions& actions : orders)
        CHECK(read_actions(to_text(actions), "", "") == actions);
    }
}

TEST_CASE("CSV as PyTorch writes it: quotes, blanks, line ends, pairs") {
  const std::vector<Actions> orders =
      read_orders("0F0, 0F1 ,,\"0B0\",\r\n1F0,(1F1;1B0)OVERLAP_F_B,1I1,1W1\r\n", "");
  REQUIRE(orders.size() == 2);
  CHECK(to_text(orders[0]) == "F0.0 F0.1 B0.0");
  CHECK(to_text(orders[1]) == "F1.0 F1.1+B1.0 I1.1 W1.1");
}

TEST_CASE("communication that PyTorch's runtime adds is skipped") {
  const std::vector<Actions> orders = read_orders(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD\n"
      "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,(1F1;1B1)OVERLAP_F_B,12SEND_B7\n",
      "order.csv");
  REQUIRE(orders.size() == 2);
  CHECK(to_text(orders[0]) == "F0.0 F0.1 B0.0");
  CHECK(to_text(orders[1]) == "F1.0 B1.0 F1.1+B1.1");
  CHECK(complaint("0UNSHARD,0RESHARD\n").starts_with("order.csv: line 1: has no actions"));
}

TEST_CASE("text that is not an order is rejected") {
  for (const char* cell : {"0SEND_F", "0SEND_W0", "SEND_F0", "0SEND_F0x", "0UNSHARD1", "UNSHARD",
                           "70000UNSHARD", "0RECV_F70000000"})
    CHECK(complaint("0F0," + std::string(cell) + "\n")
              .starts_with("order.csv: line 1: \"" + std::string(cell) + "\" is not an action"));
  CHECK(complaint("0F0\n0F70000000\n")
            .starts_with("order.csv: line 2: \"0F70000000\" is not an action"));
  for (const char* cell : {"0F0:all", "0F0:", "0B0:full"})
    CHECK(complaint(std::string(cell) + "\n")
              .starts_with("order.csv: line 1: \"" + std::string(cell)));
  CHECK(complaint("(0B0;1F0)OVERLAP_F_B\n").starts_with("order.csv: line 1: \"(0B0;1F0)"));
  CHECK(complaint("\n \n").starts_with("order.csv: has no actions"));
  CHECK(complaint("polyphony actions 2\nF0.0\n")
            .starts_with("order.csv: line 1: version \"2\" is not supported"));
  CHECK(complaint("polyphony actions 1\nF0\n")
            .starts_with("order.csv: line 2: \"F0\" is not an action"));
  std::string cut = compact_text(orders_of(ScheduleKind::gpipe, {2, 1, 3}));
  cut.erase(cut.find("F1.0"), 5);
  CHECK(complaint(cut).starts_with("order.csv: line 4: hash does not match the lines before it"));
}

TEST_CASE("randomly changed text is rejected, or survives writing and reading") {
  const std::string alphabet = "0123456789FBIW.+,;()\n \"polyphnturs_OVERLAP\r\t\xff";
  for (const bool csv : {false, true}) {
    const std::vector<Actions> orders = orders_of(ScheduleKind::dualpipe_v, {2, 2, 4});
    const std::string sound = csv ? csv_text(orders) : compact_text(orders);
    for (std::uint64_t draw = 0; draw < 3000; ++draw) {
      std::string text = sound;
      for (std::uint64_t i = 0; i <= draw % 3; ++i) {
        const auto below = [&](std::size_t n, std::uint64_t which) {
          return static_cast<std::size_t>(random_bits(10 * draw + i, which) % n);
        };
        const std::size_t at = below(text.size(), 0);
        const char c = alphabet[below(alphabet.size(), 1)];
        if (below(3, 2) == 0)
          text.erase(at, 1 + below(4, 3));
        else if (below(2, 4) == 0)
          text.insert(at, 1, c);
        else
          text[at] = c;
      }
      std::vector<Actions> read;
      try {
        read = read_orders(text, "");
      } catch (const InputError&) {
        continue;
      }
      CHECK(read_orders(compact_text(read), "") == read);
    }
  }
}
