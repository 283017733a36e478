// A YAML configuration file, read key by key and checked: each key that a reader asks for becomes
// known, and finish() refuses every other one, naming the nearest known key.
//
//   Result<YamlConfig> file = YamlConfig::load("bmd.yaml");
//   YamlSection root = file->root();
//   root.text("state_dir", config.state_dir);           // absent: the default stays
//   YamlSection log = root.section("log");
//   log.choice("format", {"text", "json"}, config.format);
//   Result<void> checked = file->finish();              // the first mistake, with its line
//
// Values of a wrong type or out of range are remembered and returned by finish(); readers just go
// on. Limits: 1 MiB, 10,000 values, 32 levels. Not thread-safe; lives only while a file is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace bmgpu::wire {

struct YamlNode;   // one value of the file
struct YamlState;  // the file, its known keys and its first mistake

// One map of the file. An absent section is an empty one.
class YamlSection {
 public:
  // Any scalar. `value` keeps what it has if the key is absent.
  void text(std::string_view key, std::string& value);
  void integer(std::string_view key, std::int64_t& value, std::int64_t min, std::int64_t max);
  void boolean(std::string_view key, bool& value);
  // `value` becomes the index of the chosen word.
  void choice(std::string_view key, const std::vector<std::string>& words, std::size_t& value);
  void text_list(std::string_view key, std::vector<std::string>& value);
  // A map with free keys, in the order of the file.
  void text_map(std::string_view key, std::vector<std::pair<std::string, std::string>>& value);
  YamlSection section(std::string_view key);
  std::vector<YamlSection> section_list(std::string_view key);

  bool has(std::string_view key) const;
  // Remembers a mistake of the caller's own finding at `key`: "prices.default: …".
  void reject(std::string_view key, std::string_view why);

 private:
  friend class YamlConfig;
  YamlSection(std::shared_ptr<YamlState> state, const YamlNode* node, std::string path);
  const YamlNode* find(std::string_view key);
  const YamlNode* find_scalar(std::string_view key, std::string_view wanted);
  void mistake(const YamlNode* at, std::string_view key, std::string_view why);

  std::shared_ptr<YamlState> state_;  // shared by all sections of one file
  const YamlNode* node_;              // null: absent
  std::string path_;                  // "" or "log."
};

class YamlConfig {
 public:
  static Result<YamlConfig> load(const std::string& file);
  // `name` stands for the file in messages.
  static Result<YamlConfig> parse(std::string_view text, std::string name);

  YamlSection root();
  // The first mistake in the order of the file: "agent.yaml:3: log.levle: unknown key; did you
  // mean log.level?".
  Result<void> finish();

 private:
  explicit YamlConfig(std::shared_ptr<YamlState> state);
  std::shared_ptr<YamlState> state_;
};

}  // namespace bmgpu::wire
