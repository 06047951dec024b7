"""polyphony scan: shards and folders created here become a recorded data source for planning and prediction."""
import io
import json
import struct
import tarfile
import zlib

import harness
from harness import POLYPHONY, SCENARIOS, run

TINY = SCENARIOS / "tiny.json"


def png(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + b"\0" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


class Scan(harness.SystemTest):
    def test_shards_to_a_prediction(self):
        shard = self.folder / "00.tar"
        with tarfile.open(shard, "w", format=tarfile.PAX_FORMAT) as tar:
            for i in range(12):
                name = f"{'long' * 30}/{i:03}"
                for ending, content in ((".png", png(16 * (i + 1), 32)), (".json", json.dumps({"caption": "word " * (i + 1)}).encode())):
                    member = tarfile.TarInfo(name + ending)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        lines = self.folder / "mix.jsonl"
        done = run(POLYPHONY, "scan", TINY, self.folder, "--native", "--set", "data.sequence=9999", "--set", "model.vision.image_size=128", "--out", lines, "--format", "json")
        self.assert_ok(done)
        summary = json.loads(done.stdout)
        self.assertEqual(summary["samples"], 12)
        patches = [json.loads(line)["items"][0][1] for line in lines.read_text().splitlines()]
        self.assertEqual(patches, sorted(patches))
        self.assertLess(patches[0], patches[-1])
        recorded = json.dumps({"recorded": str(lines)})
        scenario = json.loads(TINY.read_text())
        scenario["model"]["vision"]["image_size"] = 128
        scenario["data"] = {"source": json.loads(recorded), "global_batch": scenario["data"]["global_batch"]}
        mine = self.folder / "mine.json"
        mine.write_text(json.dumps(scenario))
        answer = run(POLYPHONY, "simulate", mine, "--batches", 3, "--format", "json")
        self.assert_ok(answer)
        self.assertGreater(len(answer.stdout), 0)

    def test_no_samples_and_truncated_files(self):
        empty = run(POLYPHONY, "scan", TINY, self.folder)
        self.assertEqual(empty.returncode, 2, empty.stderr)
        self.assertIn("no sample was found", empty.stderr)
        cut = self.folder / "cut.tar"
        with tarfile.open(cut, "w") as tar:
            member = tarfile.TarInfo("a.txt")
            member.size = 5000
            tar.addfile(member, io.BytesIO(b"x" * 5000))
        cut.write_bytes(cut.read_bytes()[:2000])
        done = run(POLYPHONY, "scan", TINY, cut)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cut.tar", done.stderr)


if __name__ == "__main__":
    harness.main()
