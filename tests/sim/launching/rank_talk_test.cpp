#include <doctest/doctest.h>

#include "sim/launching/rank_talk.h"

using namespace polyphony;
using namespace polyphony::sim;

TEST_CASE("what ranks say is shown a second later, once, in whole lines") {
  RankTalk talk;
  talk.hear(0, "loud and cl", false, Seconds(0));
  talk.hear(1, "loud and clear\n", false, Seconds(0));
  talk.hear(0, "ear\nand more", false, Seconds(0.5));
  CHECK(talk.take(Seconds(0.9)).empty());
  CHECK(talk.take(Seconds(1)) == "loud and clear\n");
  CHECK(talk.take(Seconds(2)).empty());
  talk.hear(0, "", true, Seconds(3));  // it ended without an end of line
  CHECK(talk.take(Seconds(3), true) == "and more\n");
}

TEST_CASE("of a run whose input is refused only the refusal is shown") {
  RankTalk talk;
  talk.hear(0, "rank 0 misses rank 1\n", true, Seconds(0));
  talk.hear(1, "scenario.json: no\n", true, Seconds(0.5));
  talk.listen_only_to(1);
  CHECK(talk.take(Seconds(9)) == "scenario.json: no\n");
}

TEST_CASE("who blames whom, and whom a signal stopped") {
  RankTalk talk;
  talk.hear(2, "rank 2: lost rank 13: it is silent\nrank 2: lost rank 4: later\n", false,
            Seconds(0));
  talk.hear(3, "polyphony-worker: stopped by SIGTERM before its first step\n", false, Seconds(0));
  CHECK(talk.loss(2) == "lost rank 13: it is silent");
  CHECK(talk.loss(3).empty());
  CHECK(talk.lost(13));
  CHECK_FALSE(talk.lost(2));
  CHECK(talk.stopped(3));
  CHECK_FALSE(talk.stopped(2));
}
