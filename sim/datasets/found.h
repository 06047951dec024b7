// Samples of a data set on disk: images by their sizes, audio by its length, text. Read from
//   a folder           pictures with text and sound of the same name (cat.png, cat.txt, cat.ogg), below it too
//   tar shards         WebDataset: files of one name up to the first dot are a sample; a folder of them, or one
//   JSON lines         {"image": "a.png" | [...], "conversations": [{"from": "human" | "gpt", "value": …}]}, as LLaVA's,
//                      or {"messages": [{"role": "user" | "assistant", "content": …}]}; pictures by paths from the
//                      file's folder, or from `pictures`. Also one array of such objects.
// The order is that of names, or of the file. Text: `answer` is what a model learns to say, `prompt` what it is told. Of a
// .txt the first line where lines in other languages follow (Tux Paint's "de.utf8=…"), of a .json "caption" or "text", and
// conversations as above.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shared/units.h"
#include "sim/datasets/picture_size.h"

namespace polyphony::sim {

struct Found {
  std::string name;
  std::vector<PictureSize> pictures;
  std::vector<Seconds> sounds;
  std::string prompt, answer;
};

inline constexpr const char* kMissingPicture = "missing picture";

struct Finder {
  std::string pictures;  // folder that the image paths of JSON lines start from; empty: the file's
  // Returns false to stop.
  std::function<bool(Found)> visit;
  // Called for a sample that is left out; `why` is one of a few kinds of fault ("damaged picture").
  std::function<void(const std::string& name, const std::string& why)> leave_out;
  std::function<void(double share)> progress;
};

// Errors: InputError where the data set itself is missing, unknown or cut off.
void find_samples(const std::string& path, const Finder& finder);

// Of one sample, file by file. `why` of what it cannot use.
class SampleFiles {
 public:
  explicit SampleFiles(const std::string& name) { found_.name = name; }
  explicit SampleFiles(Found begun) : found_(std::move(begun)) {}
  // Whether a file of this name has a part in a sample, and how many of its bytes are wanted.
  static bool wanted(const std::string& name);
  static std::size_t most(const std::string& name);
  void add(const std::string& name, const std::string& bytes);
  // Leaves the sample out; `path`: the file that was looked for, named with the sample.
  void lack(const std::string& why, const std::string& path = "");
  // Hands the sample over: false: enough.
  bool finish(const Finder& finder);

 private:
  Found found_;
  std::string why_;
};

// What one line of JSON says, but for its pictures, which `paths` gets. False: it is no conversation.
bool read_conversation(const std::string& line, Found& found, std::vector<std::string>& paths);
// Each object of a file of JSON lines, or of one array, as text.
std::vector<std::string> conversation_lines(const std::string& path);

}  // namespace polyphony::sim
