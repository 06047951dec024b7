// Reads the samples of a data set on disk: conversations, and where their images and audio clips
// are. Of images and clips only the headers are read, and nothing is decoded.
//   a folder           images and audio files with a text file of the same name (cat.png, cat.ogg,
//                      cat.txt), subfolders included
//   tar shards         WebDataset: files with the same name up to the first dot are a sample; a
//                      folder of shards, one shard, or several: "data/{000..127}.tar", "{a,b}.tar"
//   JSON lines         {"image": "a.png" | [...], "conversations": [{"from": "human" | "gpt" |
//                      "system", "value": …}]}, as in LLaVA, or {"messages": [{"role": "user" |
//                      "assistant" | "system", "content": …}]}; a content is a text or a list of
//                      parts {"type": "text", "text": …}, {"type": "image", "image": PATH},
//                      {"type": "image_url", "image_url": {"url": PATH}} and {"type": "audio",
//                      "audio": PATH}. The keys "image" and "images", "audio",
//                      "audios", "sound" and "sounds" have a path, or a list of them, relative to
//                      the file's folder or to `pictures`. One array of such objects is accepted,
//                      too
//
// Samples come in the order of their names, or of the file. A caption (a .txt file, or the key
// "caption" or "text") is a conversation of one turn, the assistant's. Of a .txt file whose next
// lines are translations (Tux Paint's "de.utf8=…") only the first line is taken.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/datasets/conversation.h"
#include "shared/datasets/picture_size.h"
#include "shared/datasets/sound_length.h"
#include "shared/files/file_part.h"
#include "shared/units.h"

namespace polyphony {

struct FoundPicture {
  PictureSize size;
  FilePart file;
};
struct FoundSound {
  Seconds length;
  FilePart file;
};

// A sample as found on disk.
struct Found {
  std::string name;
  std::vector<FoundPicture> pictures;
  std::vector<FoundSound> sounds;
  Conversation conversation;
};

inline constexpr const char* kMissingPicture = "missing image";
inline constexpr const char* kMissingSound = "missing audio";

struct Finder {
  // Folder of the paths in JSON lines, of images and audio; empty: the file's folder.
  std::string pictures;
  // Called for each sample; returns false to stop.
  std::function<bool(Found)> visit;
  // Called for each sample that is skipped. `why` takes few values ("damaged image"), so that
  // skipped samples can be counted by reason.
  std::function<void(const std::string& name, const std::string& why)> leave_out;
  std::function<void(double share)> progress;
};

// Returns the paths that a path with braces stands for: a range of numbers with as many digits as
// the first one has, or a list of words. Throws InputError if a range is none.
std::vector<std::string> brace_paths(const std::string& path);

// Returns the tar shards that a data set consists of, in order; none if it is of another kind.
// Throws InputError if the data set is missing, or a shard that its path names.
std::vector<std::string> tar_shards(const std::string& path);

// Throws InputError that says how to convert the file if its name ends in ".parquet".
void refuse_parquet(const std::string& path);

// Throws InputError if the data set itself is missing, of an unknown kind or truncated.
void find_samples(const std::string& path, const Finder& finder);

// What is read of a file of a sample.
struct FileEnds {
  std::string head;        // at most SampleFiles::most() bytes
  std::string tail;        // the last kSoundTail bytes, of audio only
  std::int64_t bytes = 0;  // of the whole file
};

// Collects one sample, file by file, and the reason to skip it, if there is one.
class SampleFiles {
 public:
  explicit SampleFiles(const std::string& name) { found_.name = name; }
  explicit SampleFiles(Found begun) : found_(std::move(begun)) {}
  // Whether a file of this name can be part of a sample, and how many of its first bytes are needed
  // at most.
  static bool wanted(const std::string& name);
  static std::size_t most(const std::string& name);
  // Adds a file of the sample, or of its part in an archive.
  void add(const std::string& name, const FilePart& place, const FileEnds& ends);
  // Marks the sample as skipped; `path`: the file that was looked for, named with the sample.
  void lack(const std::string& why, const std::string& path = "");
  // Hands the sample to the finder, visited or skipped. Returns false to stop.
  bool finish(const Finder& finder);

 private:
  Found found_;
  std::string why_;
};

}  // namespace polyphony
