#include "shared/datasets/found.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "shared/datasets/bytes.h"
#include "shared/datasets/tar.h"
#include "shared/error.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = std::size_t{16} << 20;
constexpr const char* kUnknownSound = "damaged or unknown audio";

// The size of most images is in their first bytes, and headers with a preview are rare.
constexpr std::size_t kFirst = std::size_t{4} << 10;

// Returns whether no more of a file has to be read.
bool is_enough(const std::string& name, const std::string& head) {
  return head.size() >= SampleFiles::most(name) || (is_picture(name) && picture_size(head));
}

// Returns the ends of a file; nothing if it cannot be read.
std::optional<FileEnds> ends_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string name = path.string();
  FileEnds ends;
  std::string block(is_picture(name) ? kFirst : std::size_t{1} << 16, '\0');
  while (file && !is_enough(name, ends.head)) {
    file.read(block.data(), static_cast<std::streamsize>(std::min(
                                block.size(), SampleFiles::most(name) - ends.head.size())));
    ends.head.append(block, 0, static_cast<std::size_t>(file.gcount()));
    block.resize(std::size_t{1} << 16);
  }
  ends.bytes = static_cast<std::int64_t>(ends.head.size());
  if (!is_sound(name)) return ends;
  file.clear();
  if (file.seekg(0, std::ios::end)) ends.bytes = std::max<std::int64_t>(ends.bytes, file.tellg());
  const std::int64_t tail = std::min<std::int64_t>(kSoundTail, ends.bytes);
  ends.tail.resize(static_cast<std::size_t>(tail));
  file.seekg(ends.bytes - tail);
  file.read(ends.tail.data(), tail);
  ends.tail.resize(static_cast<std::size_t>(file.gcount()));
  return ends;
}

FileEnds ends_of(TarReader& tar, const TarReader::Member& member) {
  FileEnds ends{{}, {}, member.size};
  if (is_picture(member.name)) ends.head = tar.read(kFirst);
  if (!is_enough(member.name, ends.head)) ends.head = tar.read(SampleFiles::most(member.name));
  if (is_sound(member.name)) ends.tail = tar.read_end(kSoundTail);
  return ends;
}

// Returns the path as a message shows it.
std::string in_one_line(std::string path) {
  for (char& c : path)
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  return path;
}

// Returns the first line if the next ones are translations, else the whole text.
std::string caption_of(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return text;
  const std::string second = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
  return second.find(".utf8=") != std::string::npos ? text.substr(0, end) : text;
}

// Returns the path up to the first dot of the file name, by which WebDataset groups files.
std::string group_of(const std::string& name) {
  const std::size_t folder = name.rfind('/') + 1;  // npos + 1 is 0
  return name.substr(0, name.find('.', folder));
}

bool is_parquet(const std::string& path) { return ends_in(path, {".parquet"}); }

void find_in_folder(const std::string& path, const Finder& finder) {
  std::vector<std::string> names;  // relative to the folder
  std::string parquet;
  for (const auto& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied |
                                                  fs::directory_options::follow_directory_symlink))
    if (entry.is_regular_file() && SampleFiles::wanted(entry.path().string()))
      names.push_back(entry.path().lexically_relative(path).string());
    else if (is_parquet(entry.path().string()))
      parquet = entry.path().string();
  const auto is_media = [](const std::string& name) { return is_picture(name) || is_sound(name); };
  if (std::none_of(names.begin(), names.end(), is_media)) refuse_parquet(parquet);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(group_of(a), a) < std::pair(group_of(b), b);
  });
  for (std::size_t i = 0; i < names.size();) {
    SampleFiles sample(group_of(names[i]));
    bool has_media = false;
    const std::size_t first = i;
    for (; i < names.size() && group_of(names[i]) == group_of(names[first]); ++i) {
      const fs::path file = fs::path(path) / names[i];
      has_media |= is_media(names[i]);
      sample.add(names[i], {file.string()}, ends_of(file).value_or(FileEnds()));
    }
    finder.progress(static_cast<double>(i) / static_cast<double>(names.size()));
    if (has_media && !sample.finish(finder)) return;  // text only: a README
  }
}

// Returns false if the finder has stopped the search.
bool find_in_tar(const std::string& path, const Finder& finder) {
  TarReader tar(path);
  std::optional<SampleFiles> sample;
  std::string group;
  while (const std::optional<TarReader::Member> member = tar.next()) {
    if (!SampleFiles::wanted(member->name)) continue;
    if (!sample || group_of(member->name) != group) {
      if (sample && !sample->finish(finder)) return false;
      group = group_of(member->name);
      sample.emplace(group);
    }
    sample->add(member->name, {path, member->offset, member->size}, ends_of(tar, *member));
    finder.progress(tar.share());
  }
  return !sample || sample->finish(finder);
}

// Reads JSON lines, or one array of objects.
void find_in_lines(const std::string& path, const Finder& finder) {
  const std::vector<std::string> lines = conversation_lines(path);
  const fs::path folder =
      finder.pictures.empty() ? fs::path(path).parent_path() : fs::path(finder.pictures);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string name = "sample " + std::to_string(i);
    finder.progress(static_cast<double>(i) / static_cast<double>(lines.size()));
    ReadConversation read = read_conversation(lines[i]);
    if (!read.refused.empty() || read.conversation.empty()) {
      finder.leave_out(read.about.empty() ? name : name + ", " + in_one_line(read.about),
                       read.refused.empty() ? "no conversation" : read.refused);
      continue;
    }
    SampleFiles sample(Found{name, {}, {}, std::move(read.conversation)});
    const auto add = [&](const std::string& media, const char* missing) {
      const std::string file = (folder / media).string();
      if (const std::optional<FileEnds> ends = ends_of(file))
        sample.add(media, {file}, *ends);
      else
        sample.lack(missing, file);
    };
    for (const std::string& picture : read.pictures) add(picture, kMissingPicture);
    for (const std::string& sound : read.sounds)
      if (is_sound(sound))
        add(sound, kMissingSound);
      else
        sample.lack(kUnknownSound, (folder / sound).string());
    if (!sample.finish(finder)) return;
  }
}

}  // namespace

bool SampleFiles::wanted(const std::string& name) {
  return is_picture(name) || is_sound(name) || ends_in(name, {".txt", ".json"});
}

std::size_t SampleFiles::most(const std::string& name) {
  return is_picture(name) ? kPictureHead : is_sound(name) ? kSoundHead : kMostText;
}

void SampleFiles::add(const std::string& name, const FilePart& place, const FileEnds& ends) {
  Conversation& conversation = found_.conversation;
  if (is_sound(name)) {
    if (const std::optional<Seconds> length = sound_length(ends.head, ends.tail, ends.bytes))
      found_.sounds.push_back({*length, place});
    else
      lack(kUnknownSound);
  } else if (ends_in(name, {".txt"})) {
    if (conversation.empty()) conversation = {{{Speaker::assistant, caption_of(ends.head)}}};
  } else if (ends_in(name, {".json"})) {
    if (!conversation.empty()) return;
    ReadConversation read = read_conversation(ends.head);
    // What is no JSON may be of something else beside a caption.
    if (!read.refused.empty() && !read.conversation.empty()) lack(read.refused, read.about);
    conversation = std::move(read.conversation);
  } else if (const std::optional<PictureSize> size = picture_size(ends.head)) {
    found_.pictures.push_back({*size, place});
  } else {
    lack("damaged or unknown image");
  }
}

void SampleFiles::lack(const std::string& why, const std::string& path) {
  if (why_.empty() && !path.empty()) found_.name += ", " + in_one_line(path);
  if (why_.empty()) why_ = why;
}

bool SampleFiles::finish(const Finder& finder) {
  if (why_.empty() && found_.conversation.empty()) why_ = "no text";
  if (why_.empty()) return finder.visit(std::move(found_));
  finder.leave_out(found_.name, why_);
  return true;
}

std::vector<std::string> brace_paths(const std::string& path) {
  constexpr long kMostPaths = 1'000'000;
  const std::size_t open = path.find('{'), close = path.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {path};
  const std::string front = path.substr(0, open), inner = path.substr(open + 1, close - open - 1);
  const std::vector<std::string> backs = brace_paths(path.substr(close + 1));
  std::vector<std::string> words;
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.size() < 10 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (const std::size_t dots = inner.find(".."); dots != std::string::npos) {
    const std::string first = inner.substr(0, dots), last = inner.substr(dots + 2);
    if (!is_number(first) || !is_number(last) || std::stol(last) < std::stol(first))
      throw InputError(path, "", "\"{" + inner + "}\" is not a range of numbers",
                       "write {FIRST..LAST}, such as {000..127}, or {a,b}");
    if (std::stol(last) - std::stol(first) >= kMostPaths / static_cast<long>(backs.size()))
      throw InputError(path, "", "names more than 1,000,000 files", "name fewer, larger shards");
    for (long i = std::stol(first); i <= std::stol(last); ++i) {
      const std::string number = std::to_string(i);
      words.push_back(std::string(first.size() - std::min(first.size(), number.size()), '0') +
                      number);
    }
  } else {
    for (std::size_t begin = 0; begin <= inner.size();) {
      const std::size_t end = std::min(inner.find(',', begin), inner.size());
      words.push_back(inner.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::vector<std::string> paths;
  for (const std::string& word : words)
    for (const std::string& back : backs) paths.push_back(front + word + back);
  return paths;
}

namespace {

// Returns the shards that a path with braces names.
std::vector<std::string> named_shards(const std::string& path) {
  std::vector<std::string> shards = brace_paths(path);
  for (const std::string& shard : shards)
    if (!ends_in(shard, {".tar"}) || !fs::exists(shard))
      throw InputError(shard, "", "is not a tar shard that exists", "check the range in " + path);
  return shards;
}

}  // namespace

std::vector<std::string> tar_shards(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    if (path.find('{') != std::string::npos) return named_shards(path);
    throw InputError(path, "", "the data set does not exist", "check the path");
  }
  if (ends_in(path, {".tar"})) return {path};
  std::vector<std::string> shards;
  if (!fs::is_directory(path, failed)) return shards;
  for (const auto& entry : fs::directory_iterator(path))
    if (ends_in(entry.path().string(), {".tar"})) shards.push_back(entry.path().string());
  std::sort(shards.begin(), shards.end());
  return shards;
}

void refuse_parquet(const std::string& path) {
  if (!is_parquet(path)) return;
  throw InputError(path, "", "is Parquet, which is not read",
                   "convert texts and paths of images to JSON lines: python3 -c \"import pandas; "
                   "pandas.read_parquet('" +
                       path +
                       "').to_json('data.jsonl', orient='records', lines=True)\"; write images "
                       "that are in the file to a tar shard by Python's tarfile");
}

void find_samples(const std::string& path, const Finder& finder) {
  if (path.find("pipe:") != std::string::npos)
    throw InputError(path, "", "is a command, which is not run", "copy the shards to a folder");
  refuse_parquet(path);
  const std::vector<std::string> shards = tar_shards(path);
  std::error_code failed;
  if (shards.empty() && !fs::is_directory(path, failed)) return find_in_lines(path, finder);
  if (shards.empty()) return find_in_folder(path, finder);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Finder of_shard = finder;
    of_shard.progress = [&](double share) {
      finder.progress((static_cast<double>(i) + share) / static_cast<double>(shards.size()));
    };
    if (!find_in_tar(shards[i], of_shard)) return;
  }
}

}  // namespace polyphony
