"""--execution-trace of simulate and replay: files for other simulators, decoded and simulated here from the schema only."""
import collections
import json
import os
import re
import stat

import harness
from harness import POLYPHONY, SCENARIOS, run

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
Node = collections.namedtuple("Node", "id name type after micros attributes")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Decodes a message to [(field, number or bytes)]."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
            assert at <= len(data), "cut off"
        else:
            assert key & 7 == 0, key
        found.append((key >> 3, value))
    return found


def pieces(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        size, at = varint(data, at)
        assert at + size <= len(data), "cut off"
        yield data[at:at + size]
        at += size


def attribute(data):
    (_, name), (field, value) = fields(data)
    return name.decode(), value.decode() if field == 29 else value


def nodes(path):
    stream = pieces(path)
    assert fields(next(stream))[0] == (1, b"0.0.4")
    for piece in stream:
        of = collections.defaultdict(list)
        for field, value in fields(piece):
            of[field].append(value)
        after, at = [], 0
        for packed in of[5]:
            while at < len(packed):
                value, at = varint(packed, at)
                after.append(value)
        yield Node(of[1][0], of[2][0].decode(), of[3][0], after, of[7][0], dict(map(attribute, of[10])))


def play(ranks):
    """Microseconds until the last node ends. The two ends of a message (by tag) and the members of a collective (by order in the group) run together."""
    meetings, meeting_of, after, waiting = collections.defaultdict(list), {}, collections.defaultdict(list), {}
    for rank, graph in enumerate(ranks):
        calls = collections.Counter()
        for node in sorted(graph, key=lambda n: n.id):
            key = (rank, node.id)
            if node.type in (SEND, RECEIVE):
                met = tuple(node.attributes[k] for k in ("comm_src", "comm_dst", "comm_tag"))
            elif node.type == COLLECTIVE:
                group = node.attributes["pg_name"]
                met = (group, calls[group])
                calls[group] += 1
            else:
                met = key
            meetings[met].append((key, node.micros))
            meeting_of[key] = met
            waiting[key] = len(node.after)
            for before in node.after:
                after[rank, before].append(key)
    missing = {met: len(members) for met, members in meetings.items()}
    start, ready = collections.Counter(), collections.Counter()
    free, played, last = [key for key, count in waiting.items() if count == 0], 0, 0
    while free:
        key = free.pop()
        met = meeting_of[key]
        start[met] = max(start[met], ready[key])
        missing[met] -= 1
        if missing[met]:
            continue
        for member, micros in meetings[met]:
            played += 1
            end = start[met] + micros
            last = max(last, end)
            for follower in after[member]:
                ready[follower] = max(ready[follower], end)
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    free.append(follower)
    assert played == len(waiting), "nodes wait for each other"
    return last


class ExecutionTraces(harness.SystemTest):
    def exported(self, *command):
        """The graphs by rank, and the output of the command."""
        folder = self.folder / "et"
        done = run(POLYPHONY, *command, "--execution-trace", folder, "--format", "json", limit=120)
        self.assert_ok(done)
        ranks = [list(nodes(folder / f"rank.{r}.et")) for r in range(len(list(folder.glob("rank.*.et"))))]
        groups = json.loads((folder / "comm_groups.json").read_text())
        for rank, graph in enumerate(ranks):
            self.assertEqual([n.id for n in graph if n.id < 1], [])
            self.assertEqual(len({n.id for n in graph}), len(graph))
            for node in graph:
                if node.type == COLLECTIVE:
                    self.assertIn(rank, groups[node.attributes["pg_name"]])
                    self.assertGreater(node.attributes["comm_size"], 0)
        return ranks, json.loads(done.stdout)

    def test_a_simulated_step_is_reproduced(self):
        ranks, answer = self.exported("simulate", SCENARIOS / "rehearse_8.json")
        self.assertEqual(len(ranks), 8)
        # Starts and ends are rounded, not durations: exact to the microsecond for any number of nodes.
        self.assertAlmostEqual(play(ranks) / 1e6, answer["step_seconds"], delta=1.1e-6)
        sends, receives = collections.Counter(), collections.Counter()
        for rank, graph in enumerate(ranks):
            for node in graph:
                ends = tuple(node.attributes.get(k) for k in ("comm_src", "comm_dst", "comm_tag", "comm_size"))
                if node.type == SEND:
                    sends[ends] += 1
                    self.assertEqual(ends[0], rank)
                if node.type == RECEIVE:
                    receives[ends] += 1
                    self.assertEqual(ends[1], rank)
        self.assertEqual(sends, receives)
        self.assertGreater(len(sends), 0)
        self.assertEqual(set(sends.values()), {1})

    def test_collectives_inside_an_op(self):
        ranks, answer = self.exported("simulate", SCENARIOS / "tiny_text_only.json")
        self.assertAlmostEqual(play(ranks) / 1e6, answer["step_seconds"], delta=1.1e-6)
        inner = [n for n in ranks[0] if n.type == COLLECTIVE and re.match("F |B ", n.name)]
        self.assertGreater(len(inner), 0, {n.name for n in ranks[0]})
        self.assertGreater(sum(n.attributes["duration_nanos"] for n in inner), 0)

    def test_a_measured_step_is_reproduced(self):
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 9, "--trace-steps", "3:9", limit=120))
        ranks, answer = self.exported("replay", out)
        self.assertEqual(len(ranks), 2)
        # Its critical path ends with the printed step.
        path = answer[0]["before"]["critical_path"]
        self.assertAlmostEqual(play(ranks) / 1e6, max(piece["end_seconds"] for piece in path), delta=1.1e-6)
        changed, answer = self.exported("replay", out, "--faster", "update=0.01")
        self.assertGreater(play(changed), play(ranks))
        self.assert_one_line(run(POLYPHONY, "replay", out, "--execution-trace", self.folder / "x", "--vary", "layout.microbatches=2,4"),
                             "--vary replays several")

    def test_folders_that_are_not_writable(self):
        tiny = SCENARIOS / "tiny.json"
        file = self.folder / "file"
        file.write_text("")
        self.assert_one_line(run(POLYPHONY, "simulate", tiny, "--execution-trace", file), file)
        self.assert_one_line(run(POLYPHONY, "simulate", tiny, "--execution-trace", ""), "--execution-trace", "needs the name of a folder")
        if os.geteuid() != 0:
            closed = self.folder / "closed"
            closed.mkdir()
            closed.chmod(stat.S_IREAD | stat.S_IEXEC)
            self.assert_one_line(run(POLYPHONY, "simulate", tiny, "--execution-trace", closed / "et"), closed)


if __name__ == "__main__":
    harness.main()
