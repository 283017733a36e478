#include "wire/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/nearest.h"

namespace bmgpu::wire {

struct YamlEntry;

struct YamlNode {
  enum class Kind { Null, Scalar, List, Map } kind = Kind::Null;
  std::string scalar;
  int line = 0;
  std::vector<YamlEntry> map;
  std::vector<YamlNode> list;
};

struct YamlEntry {
  std::string key;
  YamlNode value;
};

struct YamlState {
  std::string name;
  YamlNode root;
  std::map<const YamlNode*, std::pair<std::string, std::set<std::string>>>
      known;  // map → path, keys
  std::optional<Error> first_mistake;
  int first_mistake_line = 0;

  void mistake(int line, const std::string& message) {
    if (!first_mistake || line < first_mistake_line) {
      const std::string where = line > 0 ? name + ":" + std::to_string(line) : name;
      first_mistake = Error{ErrorCode::InvalidArgument, where + ": " + message};
      first_mistake_line = line;
    }
  }
};

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr int kValuesMax = 10'000;
constexpr int kDepthMax = 32;

// Copies yaml-cpp's tree into ours. Aliases are copied out, so the limit on values also stops a
// file whose aliases multiply.
class TreeReader {
 public:
  Result<YamlNode> read(const YAML::Node& from, int depth) {
    YamlNode node;
    node.line = from.Mark().line + 1;
    if (++values_ > kValuesMax || depth > kDepthMax) {
      return Error{ErrorCode::InvalidArgument, "more than 10,000 values or 32 levels"};
    }
    if (from.IsScalar()) {
      node.kind = YamlNode::Kind::Scalar;
      node.scalar = from.Scalar();
    } else if (from.IsSequence()) {
      node.kind = YamlNode::Kind::List;
      for (const YAML::Node& item : from) {
        Result<YamlNode> child = read(item, depth + 1);
        if (!child) {
          return child;
        }
        node.list.push_back(std::move(*child));
      }
    } else if (from.IsMap()) {
      return read_map(from, std::move(node), depth);
    }
    return node;
  }

 private:
  Result<YamlNode> read_map(const YAML::Node& from, YamlNode node, int depth) {
    node.kind = YamlNode::Kind::Map;
    for (const auto& entry : from) {
      const std::string at = "line " + std::to_string(entry.first.Mark().line + 1) + ": ";
      if (!entry.first.IsScalar()) {
        return Error{ErrorCode::InvalidArgument, at + "a key must be one word"};
      }
      const std::string& key = entry.first.Scalar();
      for (const auto& [other, unused] : node.map) {
        if (other == key) {
          return Error{ErrorCode::InvalidArgument, at + "the key '" + key + "' stands here twice"};
        }
      }
      Result<YamlNode> child = read(entry.second, depth + 1);
      if (!child) {
        return child;
      }
      child->line = entry.first.Mark().line + 1;
      node.map.push_back(YamlEntry{key, std::move(*child)});
    }
    return node;
  }

  int values_ = 0;
};

Result<YamlNode> read_tree(std::string_view text) {
  try {
    return TreeReader().read(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& error) {
    return Error{ErrorCode::InvalidArgument,
                 "line " + std::to_string(error.mark.line + 1) + ": " + error.msg};
  }
}

}  // namespace

YamlSection::YamlSection(std::shared_ptr<YamlState> state, const YamlNode* node, std::string path)
    : state_(std::move(state)), node_(node), path_(std::move(path)) {
  if (node_ != nullptr) {
    state_->known.try_emplace(node_, path_, std::set<std::string>{});
  }
}

void YamlSection::mistake(const YamlNode* at, std::string_view key, std::string_view why) {
  const int line = at != nullptr ? at->line : node_ != nullptr ? node_->line : 0;
  state_->mistake(line, path_ + std::string(key) + ": " + std::string(why));
}

const YamlNode* YamlSection::find(std::string_view key) {
  if (node_ == nullptr) {
    return nullptr;
  }
  state_->known[node_].second.emplace(key);
  for (const auto& [name, child] : node_->map) {
    if (name == key) {
      return child.kind == YamlNode::Kind::Null ? nullptr : &child;
    }
  }
  return nullptr;
}

const YamlNode* YamlSection::find_scalar(std::string_view key, std::string_view wanted) {
  const YamlNode* found = find(key);
  if (found != nullptr && found->kind != YamlNode::Kind::Scalar) {
    mistake(found, key, "must be " + std::string(wanted));
    return nullptr;
  }
  return found;
}

bool YamlSection::has(std::string_view key) const {
  if (node_ == nullptr) {
    return false;
  }
  return std::any_of(node_->map.begin(), node_->map.end(),
                     [key](const auto& entry) { return entry.key == key; });
}

void YamlSection::text(std::string_view key, std::string& value) {
  if (const YamlNode* found = find_scalar(key, "text")) {
    value = found->scalar;
  }
}

void YamlSection::integer(std::string_view key, std::int64_t& value, std::int64_t min,
                          std::int64_t max) {
  const std::string range =
      "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  const YamlNode* found = find_scalar(key, range);
  if (found == nullptr) {
    return;
  }
  std::int64_t parsed = 0;
  const char* end = found->scalar.data() + found->scalar.size();
  const auto [stop, error] = std::from_chars(found->scalar.data(), end, parsed);
  if (error != std::errc() || stop != end || parsed < min || parsed > max) {
    mistake(found, key, "must be " + range + ", not '" + found->scalar + "'");
    return;
  }
  value = parsed;
}

void YamlSection::boolean(std::string_view key, bool& value) {
  std::size_t index = value ? 0 : 1;
  choice(key, {"true", "false"}, index);
  value = index == 0;
}

void YamlSection::choice(std::string_view key, const std::vector<std::string>& words,
                         std::size_t& value) {
  std::string list;
  for (const std::string& word : words) {
    list += (list.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
  }
  const YamlNode* found = find_scalar(key, list);
  if (found == nullptr) {
    return;
  }
  const auto at = std::find(words.begin(), words.end(), found->scalar);
  if (at == words.end()) {
    mistake(found, key, "must be " + list + ", not '" + found->scalar + "'");
    return;
  }
  value = static_cast<std::size_t>(at - words.begin());
}

void YamlSection::text_list(std::string_view key, std::vector<std::string>& value) {
  const YamlNode* found = find(key);
  if (found == nullptr) {
    return;
  }
  std::vector<std::string> items;
  for (const YamlNode& item : found->list) {
    if (item.kind != YamlNode::Kind::Scalar) {
      mistake(&item, key, "must be a list of texts");
      return;
    }
    items.push_back(item.scalar);
  }
  if (found->kind != YamlNode::Kind::List) {
    mistake(found, key, "must be a list of texts");
    return;
  }
  value = std::move(items);
}

void YamlSection::text_map(std::string_view key,
                           std::vector<std::pair<std::string, std::string>>& value) {
  const YamlNode* found = find(key);
  if (found == nullptr) {
    return;
  }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [name, child] : found->map) {
    if (child.kind != YamlNode::Kind::Scalar) {
      mistake(&child, std::string(key) + "." + name, "must be text");
      return;
    }
    entries.emplace_back(name, child.scalar);
  }
  if (found->kind != YamlNode::Kind::Map) {
    mistake(found, key, "must be a map of names to texts");
    return;
  }
  value = std::move(entries);
}

YamlSection YamlSection::section(std::string_view key) {
  const YamlNode* found = find(key);
  if (found != nullptr && found->kind != YamlNode::Kind::Map) {
    mistake(found, key, "must be a map of keys to values");
    found = nullptr;
  }
  return YamlSection(state_, found, path_ + std::string(key) + ".");
}

std::vector<YamlSection> YamlSection::section_list(std::string_view key) {
  std::vector<YamlSection> sections;
  const YamlNode* found = find(key);
  if (found == nullptr) {
    return sections;
  }
  if (found->kind != YamlNode::Kind::List) {
    mistake(found, key, "must be a list");
    return sections;
  }
  for (std::size_t i = 0; i < found->list.size(); ++i) {
    const YamlNode& item = found->list[i];
    const std::string name = std::string(key) + "[" + std::to_string(i) + "]";
    if (item.kind != YamlNode::Kind::Map) {
      mistake(&item, name, "must be a map of keys to values");
      continue;
    }
    sections.push_back(YamlSection(state_, &item, path_ + name + "."));
  }
  return sections;
}

void YamlSection::reject(std::string_view key, std::string_view why) {
  mistake(find(key), key, why);
}

YamlConfig::YamlConfig(std::shared_ptr<YamlState> state) : state_(std::move(state)) {}

Result<YamlConfig> YamlConfig::load(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    return Error{ErrorCode::NotFound,
                 file + ": cannot be opened; check that it exists and that you may read it"};
  }
  std::string text(kFileBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad() || text.size() > kFileBytesMax) {
    return Error{ErrorCode::InvalidArgument, file + ": cannot be read, or is over 1 MiB"};
  }
  return parse(text, file);
}

Result<YamlConfig> YamlConfig::parse(std::string_view text, std::string name) {
  Result<YamlNode> tree = read_tree(text);
  if (!tree) {
    return Error{tree.error().code, name + ": " + tree.error().message};
  }
  if (tree->kind != YamlNode::Kind::Map && tree->kind != YamlNode::Kind::Null) {
    return Error{ErrorCode::InvalidArgument, name + ": must be a map of keys to values"};
  }
  auto state = std::make_shared<YamlState>();
  state->name = std::move(name);
  state->root = std::move(*tree);
  return YamlConfig(std::move(state));
}

YamlSection YamlConfig::root() { return YamlSection(state_, &state_->root, ""); }

Result<void> YamlConfig::finish() {
  for (const auto& [node, path_and_keys] : state_->known) {
    const auto& [path, keys] = path_and_keys;
    for (const auto& [key, child] : node->map) {
      if (keys.contains(key)) {
        continue;
      }
      const std::vector<std::string> candidates(keys.begin(), keys.end());
      const std::string close = nearest(key, candidates);
      std::string message = path + key + ": unknown key";
      if (!close.empty()) {
        message += "; did you mean " + path + close + "?";
      }
      state_->mistake(child.line, message);
    }
  }
  return state_->first_mistake ? Result<void>(*state_->first_mistake) : Result<void>();
}

}  // namespace bmgpu::wire
