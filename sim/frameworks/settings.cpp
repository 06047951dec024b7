#include "sim/frameworks/settings.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "shared/error.h"
#include "shared/text/json_form.h"
#include "sim/frameworks/policy_settings.h"
#include "sim/frameworks/shell_words.h"
#include "sim/text/config_text.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Returns a value as Setting::value has it. Lists of Python: ['a', 'b'].
std::string plain(const std::string& text) {
  std::string value = trimmed(text);
  const std::string small = lower(value);
  if (small == "true" || small == "yes" || small == "on") return "true";
  if (small == "false" || small == "no" || small == "off") return "false";
  if (small == "none" || small == "null" || small == "~") return "none";
  if (value.starts_with("[[") && value.ends_with("]]")) {  // lists in a list: "a,b|c"
    std::string lists;
    for (std::size_t i = 1; i + 1 < value.size(); ++i) {
      if (value.compare(i, 3, "],[") == 0) {
        lists += '|';
        i += 2;
      } else if (std::string("[]'\" ").find(value[i]) == std::string::npos) {
        lists += value[i];
      }
    }
    return lists;
  }
  if (value.size() >= 2 && value.front() == '[' && value.back() == ']' &&
      value.find_first_of("+*(") == std::string::npos) {
    std::string words;
    for (const char c : value.substr(1, value.size() - 2))
      words += c == ',' || c == '\'' || c == '"' ? ' ' : c;
    std::istringstream parts(words);
    value.clear();
    for (std::string part; parts >> part;) value += (value.empty() ? "" : " ") + part;
    return value;
  }
  if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') &&
      value.back() == value.front())
    value = value.substr(1, value.size() - 2);
  return value;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

bool is_option(const std::string& word) {
  return word.starts_with("--") && word.size() > 2 && is_letter(word[2]);
}

// Returns the format that a file's name ends in.
std::optional<ConfigFormat> format_of(const std::string& path) {
  const std::string end = lower(fs::path(path).extension().string());
  if (end == ".toml") return ConfigFormat::toml;
  if (end == ".yaml" || end == ".yml") return ConfigFormat::yaml;
  if (end == ".json") return ConfigFormat::json;
  return std::nullopt;
}

class SettingsReader {
 public:
  SettingsReader(const LoadText& load, std::optional<Framework> stated,
                 const std::map<std::string, std::string>& environment, FrameworkSettings& read)
      : load_(load), stated_(stated), environment_(environment), read_(read) {}

  void add(const NamedText& file) {
    folder_ = fs::path(file.path).parent_path().string();
    if (is_printed(file.text)) return printed(file);
    if (const std::optional<ConfigFormat> format = format_of(file.path))
      return structured(file, *format, "");
    script(file);
  }

  std::set<Framework> seen;

 private:
  void is(Framework framework) { seen.insert(framework); }

  // ---- the arguments that Megatron-LM prints

  static bool is_printed(const std::string& text) {
    return text.find("- arguments -") != std::string::npos ||
           text.find("- end of arguments -") != std::string::npos;
  }

  void printed(const NamedText& file) {
    is(stated_.value_or(Framework::megatron_lm));
    read_.printed = true;
    std::istringstream lines(file.text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      // "  name ........ value", perhaps behind a rank: "0:  name ........ value".
      const std::size_t dots = line.find(" ..");
      std::size_t end = dots;
      if (end == std::string::npos) {
        // Names of 48 letters and more have no dots.
        const std::size_t begin = line.find_first_not_of(' ');
        end = begin == std::string::npos ? begin : line.find("  ", begin);
        if (end == std::string::npos || end - begin < 48) continue;
      }
      std::size_t begin = end;
      while (begin > 0 &&
             (std::isalnum(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '_'))
        --begin;
      if (begin == end || (begin > 0 && line[begin - 1] != ' ' && line[begin - 1] != ':')) continue;
      const std::size_t value = line.find_first_not_of(" .", end);
      const std::string key = line.substr(begin, end - begin);
      // A value may begin with a dot or be empty: it begins behind the blank that follows the dots.
      std::size_t from =
          line.find_first_not_of('.', std::min(line.find_first_not_of(' ', end), line.size()));
      from = from == std::string::npos ? line.size() : from + 1;
      const std::string text = from <= line.size()          ? line.substr(from)
                               : value == std::string::npos ? ""
                                                            : line.substr(value);
      read_.settings.push_back({key, plain(text), key + " = " + trimmed(text),
                                file.path + ":" + std::to_string(number)});
    }
  }

  // ---- YAML, TOML, JSON

  void flatten(const OrderedJson& value, const std::string& key, const std::string& pointer,
               const std::string& file, int depth) {
    if (value.is_object()) {
      if (depth > 60) return;
      for (const auto& [name, inner] : value.items())
        flatten(inner, key.empty() ? name : key + "." + name, pointer + "/" + name, file,
                depth + 1);
      return;
    }
    const std::string text = scalar(value);
    read_.settings.push_back({key, plain(text), key + " = " + text, file + ": " + pointer});
  }
  // Lists: words; lists of lists: "a,b|c".
  static std::string scalar(const OrderedJson& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_null()) return "none";
    if (value.is_array()) {
      const bool nested =
          !value.empty() && std::all_of(value.begin(), value.end(),
                                        [](const OrderedJson& inner) { return inner.is_array(); });
      std::string text;
      for (const OrderedJson& inner : value) {
        std::string part = scalar(inner);
        if (nested) std::replace(part.begin(), part.end(), ' ', ',');
        text += (&inner == &value.front() ? "" : nested ? "|" : " ") + part;
      }
      return text;
    }
    return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }

  void structured(const NamedText& file, ConfigFormat format, const std::string& prefix) {
    OrderedJson root = parse_config(file.text, file.path, format);
    if (!root.is_object())
      throw InputError(file.path, "", "has no settings", "give a launch script or a configuration");
    const auto has = [&](const char* key) { return root.contains(key); };
    const auto has_object = [&](const char* key) { return has(key) && root[key].is_object(); };
    if (has("polyphony"))
      throw InputError(file.path, "", "is a scenario already", "polyphony sweep answers for it");
    if (has("model_type") && has("architectures"))
      throw InputError(file.path, "", "is the configuration of a model",
                       "give it by --model, beside a launch script or configuration");
    std::string under = prefix;
    const bool inherited = inherited_ > 0;  // by a configuration that is known
    if (prefix.empty() && !inherited) {
      if (has("zero_optimization") || has("train_micro_batch_size_per_gpu")) {
        under = "deepspeed";
        is(other_or(Framework::hf_trainer));
      } else if (has("compute_environment") || has("distributed_type")) {
        under = "accelerate";
        is(other_or(Framework::hf_trainer));
      } else if (has_object("actor_rollout_ref") ||
                 (has_object("data") && has_object("trainer") && has_object("model"))) {
        is(stated_.value_or(Framework::verl));
      } else if (has_object("policy") || inherits_files(root)) {
        is(stated_.value_or(Framework::nemo_rl));
      } else if (has_object("parallelism") || (has_object("training") && has_object("model"))) {
        is(stated_.value_or(Framework::torchtitan));
      } else if (has_object("model") &&
                 (has_object("train") || has_object("ddp") || has_object("optimizer"))) {
        is(stated_.value_or(Framework::megatron_bridge));
      } else if (has("finetuning_type") || has("cutoff_len") || (has("stage") && has("template"))) {
        is(stated_.value_or(Framework::llama_factory));
      } else if (has("tensor_model_parallel_size") || has("pipeline_model_parallel_size") ||
                 has("expert_model_parallel_size")) {
        is(stated_.value_or(Framework::ms_swift));
      } else if (has("per_device_train_batch_size")) {
        is(stated_.value_or(Framework::hf_trainer));
      } else if (stated_) {
        is(*stated_);
      } else {
        throw InputError(file.path, "", "has the settings of no framework that is known",
                         "state it: --from " + joined(enum_names<Framework>()));
      }
    }
    if (seen.contains(Framework::nemo_rl)) inherit(root, file.path, format);
    const std::size_t before = read_.settings.size();
    flatten(root, under, "", file.path, 0);
    follow_files(before);
  }
  // Reads the configurations that one of NeMo-RL inherits, before its own settings.
  void inherit(OrderedJson& root, const std::string& path, ConfigFormat format) {
    const std::string folder = folder_;
    for (const std::string& named : take_defaults(root)) {
      folder_ = fs::path(path).parent_path().string();
      const std::optional<NamedText> text =
          ++inherited_ <= kMostInherited ? load_named(named) : std::nullopt;
      if (text)
        structured(*text, format, "");
      else
        read_.missing.push_back(named);
    }
    folder_ = folder;
  }
  // DeepSpeed's and Accelerate's files belong to whatever other file names a framework.
  Framework other_or(Framework otherwise) const {
    if (stated_) return *stated_;
    return seen.empty() ? otherwise : *seen.begin();
  }

  // Reads a file that another one names: relative to that one, or to the current folder. Behind
  // what a shell would work out, "$(cd ...)/run.toml", it is looked for beside that one.
  std::optional<NamedText> load_named(const std::string& named) const {
    const std::string beside =
        named.find('$') == std::string::npos ? named : fs::path(named).filename().string();
    for (const std::string& path : {(fs::path(folder_) / beside).string(), named}) {
      try {
        return NamedText{path, load_(path)};
      } catch (const InputError&) {
      }
    }
    return std::nullopt;
  }

  // Reads the files that settings from `begin` on name.
  void follow_files(std::size_t begin) {
    static const std::map<std::string, std::string> kNamed{{"deepspeed", "deepspeed"},
                                                           {"job.config_file", ""},
                                                           {"accelerate_config_file", "accelerate"},
                                                           {"config_yaml", ""}};
    const std::size_t end = read_.settings.size();
    for (std::size_t i = begin; i < end; ++i) {
      const auto found = kNamed.find(read_.settings[i].key);
      const std::string value = read_.settings[i].value;
      if (read_.settings[i].key == "parallelism.pipeline_parallel_schedule_csv") {
        if (value.empty() || value == "none") continue;
        const auto given = texts_.find(fs::path(value).filename().string());
        std::optional<NamedText> file =
            given == texts_.end() ? load_named(value) : NamedText{value, given->second};
        if (file)
          read_.schedule = std::move(file);
        else if (!read_.schedule)
          read_.missing.push_back(value);
        continue;
      }
      if (found == kNamed.end() || value.find('.') == std::string::npos) continue;
      if (!given_.insert(fs::path(value).filename().string()).second) continue;
      const std::optional<NamedText> text = load_named(value);
      if (!text) {
        read_.missing.push_back(value);
        continue;
      }
      // What the command line states counts more than the file that it names.
      std::vector<Setting> stated(
          std::make_move_iterator(read_.settings.begin() + static_cast<long>(begin)),
          std::make_move_iterator(read_.settings.end()));
      read_.settings.resize(begin);
      structured(*text, format_of(value).value_or(ConfigFormat::yaml), found->second);
      read_.settings.insert(read_.settings.end(), stated.begin(), stated.end());
      return follow_files(read_.settings.size() - stated.size() + i - begin + 1);
    }
  }

 public:
  // Files that are given need not be read again where another names them.
  void given(const NamedText& file) {
    const std::string name = fs::path(file.path).filename().string();
    given_.insert(name);
    texts_[name] = file.text;
  }

 private:
  // ---- launch scripts

  struct Launched {
    std::size_t program = 0;  // index of the word behind which the program's own options begin
    std::optional<Framework> framework;
  };

  static std::optional<Launched> launched(const std::vector<ShellWord>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i].text;
      const std::string file = fs::path(word).filename().string();
      const auto next = [&] { return i + 1 < words.size() ? words[i + 1].text : std::string(); };
      static const std::set<std::string> kVerbs{"sft", "pt", "rlhf", "export"};
      if ((file == "megatron" || file == "swift") && kVerbs.contains(next()))
        return Launched{i + 1, file == "megatron" ? Framework::ms_swift : Framework::hf_trainer};
      if (file == "llamafactory-cli" && next() == "train")
        return Launched{i + 1, Framework::llama_factory};
      if (word == "-m" && next().starts_with("verl.")) return Launched{i + 1, Framework::verl};
      if (word == "-m" &&
          (next().starts_with("torchtitan") || next().find("train") != std::string::npos))
        return Launched{i + 1, next().starts_with("torchtitan")
                                   ? std::optional(Framework::torchtitan)
                                   : std::nullopt};
      if (file == "run_train.sh") return Launched{i, Framework::torchtitan};
      if (file == "train.sh" && word.find("training") != std::string::npos)
        return Launched{i, Framework::megatron_bridge};
      if (!is_option(word) && file.ends_with(".py")) {
        if (word.find("torchtitan") != std::string::npos) return Launched{i, Framework::torchtitan};
        if (file == "sft.py" && word.find("_megatron") != std::string::npos)
          return Launched{i, Framework::ms_swift};
        return Launched{i, std::nullopt};
      }
    }
    return std::nullopt;
  }

  static std::optional<Framework> by_options(const std::set<std::string>& keys) {
    const auto has = [&](const char* key) { return keys.contains(key); };
    const auto has_section = [&](const char* prefix) {
      const auto found = keys.lower_bound(prefix);
      return found != keys.end() && found->starts_with(prefix);
    };
    if (has_section("actor_rollout_ref.")) return Framework::verl;
    if (has_section("policy.megatron_cfg.") || has_section("policy.dtensor_cfg.") ||
        has("policy.model_name"))
      return Framework::nemo_rl;
    if (has("recipe") || has("model.tensor_model_parallel_size") || has("train.global_batch_size"))
      return Framework::megatron_bridge;
    if (has("parallelism.tensor_parallel_degree") || has("job.config_file") ||
        has("training.local_batch_size") || (has("module") && has("config")))
      return Framework::torchtitan;
    if (has("finetuning_type") && has("template")) return Framework::llama_factory;
    if (has("micro_batch_size") || has("tensor_model_parallel_size") || has("num_layers"))
      return has("tuner_type") || has("train_type") || (has("model") && !has("num_layers"))
                 ? Framework::ms_swift
                 : Framework::megatron_lm;
    if (has("per_device_train_batch_size")) return Framework::hf_trainer;
    return std::nullopt;
  }

  // The framework whose trainer reads a YAML file that a command names.
  Framework by_file(const std::string& path) const {
    std::string text;
    if (const auto found = texts_.find(fs::path(path).filename().string()); found != texts_.end())
      text = found->second;
    else if (const std::optional<NamedText> file = load_named(path))
      text = file->text;
    if (text.find("actor_rollout_ref:") != std::string::npos) return Framework::verl;
    if (text.starts_with("policy:") || text.find("\npolicy:") != std::string::npos)
      return Framework::nemo_rl;
    for (const char* key : {"finetuning_type:", "template:", "stage:"})
      if (text.find(key) != std::string::npos) return Framework::llama_factory;
    return Framework::hf_trainer;
  }

  void launch_value(const std::string& key, const std::string& value) {
    if (value.empty() || value.find('$') != std::string::npos) return;
    const std::size_t cut = value.find_last_of(":-");  // "1:4" machines, "gpu:8"
    const std::string last = cut == std::string::npos ? value : value.substr(cut + 1);
    if (last.empty() || last.find_first_not_of("0123456789") != std::string::npos) return;
    read_.launch[key] = last;
  }

  void launcher_option(const std::string& key, const std::string& value) {
    static const std::map<std::string, std::string> kMeaning{{"nnodes", "nodes"},
                                                             {"nproc_per_node", "per_node"},
                                                             {"num_machines", "nodes"},
                                                             {"num_processes", "ranks"},
                                                             {"num_gpus", "per_node"},
                                                             {"num_nodes", "nodes"},
                                                             {"nodes", "nodes"},
                                                             {"gpus_per_node", "per_node"},
                                                             {"ntasks_per_node", "tasks_per_node"},
                                                             {"gres", "per_node"},
                                                             {"ntasks", "ranks"},
                                                             {"gpus", "ranks"},
                                                             {"standalone", ""}};
    const auto found = kMeaning.find(key);
    if (found != kMeaning.end() && !found->second.empty()) launch_value(found->second, value);
  }

  static std::string key_of(std::string option) {
    option = option.substr(option.find_first_not_of('-'));
    std::replace(option.begin(), option.end(), '-', '_');
    return option;
  }

  // Splits words into options with their values, and others.
  struct Option {
    std::string key, value, written;
    int line = 0;
  };
  // `whole`: words that are neither are told, too.
  std::vector<Option> options_of(const std::vector<ShellWord>& words, std::size_t begin,
                                 bool whole = false) {
    std::vector<Option> options;
    // Hydra's overrides may have no section: mixed_precision=bf16_mixed.
    bare_overrides_ = std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
      return word.text == "--recipe" || word.text.find("run_recipe") != std::string::npos ||
             word.text.starts_with("verl.");
    });
    for (std::size_t i = begin; i < words.size(); ++i) {
      const std::string& word = words[i].text;
      if (is_option(word)) {
        const std::size_t cut = word.find('=');
        Option option{key_of(word.substr(0, cut)), "", word, words[i].line};
        if (cut != std::string::npos) {
          option.value = plain(word.substr(cut + 1));
        } else {
          std::string value;
          while (i + 1 < words.size() && !is_option(words[i + 1].text) &&
                 !is_override(words[i + 1].text) && !is_redirection(words[i + 1].text)) {
            // A variable that is not set may hold options of its own.
            if (!value.empty() && words[i + 1].text.starts_with("$")) break;
            value += (value.empty() ? "" : " ") + words[++i].text;
          }
          option.written += value.empty() ? "" : " " + value;
          option.value = value.empty() ? "true" : plain(value);
        }
        options.push_back(std::move(option));
      } else if (is_override(word)) {
        std::string text = word;
        text.erase(0, std::min(text.find_first_not_of("+"), text.size()));
        const std::size_t cut = text.find('=');
        options.push_back({text.substr(0, cut), plain(text.substr(cut + 1)), word, words[i].line});
      } else if (word.starts_with("~")) {
        options.push_back({word.substr(1), "none", word, words[i].line});
      } else if (is_redirection(word)) {
        break;
      } else if (word.starts_with("$") && word.size() > 1 && is_letter(word[1]) &&
                 std::all_of(word.begin() + 1, word.end(),
                             [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); }) &&
                 unset_.insert(word).second) {
        read_.notes.push_back(word +
                              " is not set in the script, so that its options are not read (" +
                              "--env " + word.substr(1) + "=\"...\")");
      } else if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
        options.push_back({"config_yaml", word, word, words[i].line});
      } else if (whole && !word.starts_with("$") && word != "\\" && word != "&&") {
        options.push_back({word, "true", word, words[i].line});
      }
    }
    return options;
  }
  bool is_override(const std::string& word) {
    const std::size_t begin = word.find_first_not_of("+");
    const std::size_t cut = word.find('=');
    if (begin == std::string::npos || cut == std::string::npos || begin > 2) return false;
    if (!std::isalpha(static_cast<unsigned char>(word[begin]))) return false;
    const std::string key = word.substr(begin, cut - begin);
    return (bare_overrides_ || key.find('.') != std::string::npos) &&
           key.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
               std::string::npos;
  }
  static bool is_redirection(const std::string& word) {
    return word.starts_with(">") || word.starts_with("2>") || word == "<";  // not "<your folder>"
  }

  void script(const NamedText& file) {
    const ShellScript script = read_shell(file.text, file.path, environment_);
    for (const auto& [key, value] : script.batch) {
      std::string name = key;
      std::replace(name.begin(), name.end(), '-', '_');
      launcher_option(name, value);
    }
    for (const char* variable : {"NNODES", "NPROC_PER_NODE", "NGPU"})
      if (const auto found = script.variables.find(variable);
          found != script.variables.end() && !found->second.empty())
        launch_value(variable == std::string("NNODES") ? "nodes" : "per_node",
                     found->second.front().text);
    // Launchers, also where the program is in a variable or behind "$@".
    for (const std::vector<ShellWord>& words : script.commands)
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string name = fs::path(words[i].text).filename().string();
        if (name != "torchrun" && name != "deepspeed" && name != "accelerate" && name != "srun")
          continue;
        for (const Option& option : options_of(words, i + 1)) {
          if (option.value.find('$') == std::string::npos)
            launcher_option(option.key, option.value.substr(0, option.value.find(' ')));
        }
        break;
      }
    // The command with the most options is the training.
    std::vector<Option> best;
    const std::vector<ShellWord>* command = nullptr;
    Launched how;
    for (const std::vector<ShellWord>& words : script.commands) {
      const std::optional<Launched> found = launched(words);
      if (!found) continue;
      std::vector<Option> options = options_of(words, found->program + 1, true);
      if (command && options.size() < best.size()) continue;
      best = std::move(options);
      command = &words;
      how = *found;
    }
    if (!command) {  // a file of arguments, or a part of a script
      std::vector<ShellWord> all;
      for (const std::vector<ShellWord>& words : script.commands)
        all.insert(all.end(), words.begin(), words.end());
      if (std::none_of(all.begin(), all.end(),
                       [](const ShellWord& w) { return is_option(w.text); }))
        for (const auto& [name, words] : script.variables) {
          std::vector<ShellWord> split;
          for (const ShellWord& word : words) {
            std::istringstream lines(word.text);
            int line = word.line;
            for (std::string one; std::getline(lines, one); ++line) {
              std::istringstream parts(one);
              for (std::string part; parts >> part;) split.push_back({part, line});
            }
          }
          if (std::any_of(split.begin(), split.end(),
                          [](const ShellWord& w) { return is_option(w.text); }))
            all.insert(all.end(), split.begin(), split.end());
        }
      best = options_of(all, 0);
      if (best.empty())
        throw InputError(file.path, "", "starts no training that is known, and has no options",
                         "give a launch script, a log with the arguments, or a configuration");
    } else {
      for (const Option& option :
           options_of({command->begin(), command->begin() + static_cast<long>(how.program)}, 0)) {
        launcher_option(option.key, option.value);
        if (option.key == "config_file")
          best.push_back({"accelerate_config_file", option.value, option.written, option.line});
      }
      // A program's options may be behind another launcher's: `srun torchrun ... train.py`.
      for (const ShellWord& word : *command) {  // NNODES=2 megatron sft
        const std::size_t cut = word.text.find('=');
        if (cut == std::string::npos) break;
        const std::string name = word.text.substr(0, cut);
        if (name == "NNODES") launch_value("nodes", word.text.substr(cut + 1));
        if (name == "NPROC_PER_NODE") launch_value("per_node", word.text.substr(cut + 1));
      }
    }
    std::set<std::string> keys;
    for (const Option& option : best) keys.insert(option.key);
    std::optional<Framework> framework = stated_         ? stated_
                                         : how.framework ? how.framework
                                                         : by_options(keys);
    const auto names_file = [](const Option& option) {
      return option.key == "config_yaml" ||
             (option.key == "config" && format_of(option.value) == ConfigFormat::yaml);
    };
    if (!framework)
      for (const Option& option : best)
        if (names_file(option)) framework = by_file(option.value);
    if (framework == Framework::nemo_rl)
      for (Option& option : best)
        if (names_file(option)) option.key = "config_yaml";
    if (!framework)
      throw InputError(file.path, "", "has the options of no framework that is known",
                       "state it: --from " + joined(enum_names<Framework>()));
    is(*framework);
    const std::size_t before = read_.settings.size();
    for (const Option& option : best)
      read_.settings.push_back({option.key, option.value, option.written,
                                file.path + ":" + std::to_string(option.line)});
    for (const std::string& note : script.notes) read_.notes.push_back(file.path + ": " + note);
    follow_files(before);
  }

  const LoadText& load_;
  const std::optional<Framework> stated_;
  const std::map<std::string, std::string>& environment_;
  FrameworkSettings& read_;
  std::string folder_;
  std::set<std::string> given_, unset_;
  std::map<std::string, std::string> texts_;  // of the given files, by their names without folder
  bool bare_overrides_ = false;
  static constexpr int kMostInherited = 32;
  int inherited_ = 0;
};

}  // namespace

FrameworkSettings read_settings(const std::vector<NamedText>& files, const LoadText& load,
                                std::optional<Framework> stated,
                                const std::map<std::string, std::string>& environment) {
  FrameworkSettings read;
  SettingsReader reader(load, stated, environment, read);
  for (const NamedText& file : files) reader.given(file);
  for (const NamedText& file : files)
    if (files.size() == 1 || !file.path.ends_with(".csv")) reader.add(file);  // read where named
  for (const NamedText& file : files)
    if (files.size() > 1 && file.path.ends_with(".csv") &&
        !(read.schedule && read.schedule->text == file.text))
      read.unused.push_back(file.path);
  if (reader.seen.size() > 1) {
    // DeepSpeed's and Accelerate's files belong to the framework that the other file is of.
    reader.seen.erase(Framework::hf_trainer);
    if (reader.seen.size() > 1) {
      std::string names;
      for (const Framework framework : reader.seen)
        names += (names.empty() ? "" : " and ") + std::string(name(framework));
      throw InputError(files.front().path, "", "and the other files are of " + names,
                       "give the files of one run, or state the framework with --from");
    }
  }
  if (!reader.seen.empty()) read.framework = *reader.seen.begin();
  if (read.framework == Framework::verl || read.framework == Framework::nemo_rl)
    name_policy_settings(read);
  return read;
}

}  // namespace polyphony::sim
