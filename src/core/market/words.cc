#include "core/market/words.h"

#include <algorithm>
#include <functional>

namespace bmgpu::core {
namespace {

constexpr std::string_view kMaker = "nvidia";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty() && word != kMaker) {
      words.push_back(word);
    }
    word.clear();
  };
  for (const char raw : text) {
    const char c = lower(raw);
    if (is_word_char(c)) {
      word.push_back(c);
    } else {
      finish();
    }
  }
  finish();
  return words;
}

std::string normalise_words(std::string_view text) {
  std::string joined;
  for (const std::string& word : words_of(text)) {
    if (!joined.empty()) {
      joined.push_back(' ');
    }
    joined += word;
  }
  return joined;
}

bool all_words_in(std::string_view words, const std::vector<std::string>& model_words) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (!std::binary_search(model_words.begin(), model_words.end(), word, std::less<>())) {
      return false;
    }
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return true;
}

bool words_match(std::string_view words, std::string_view model) {
  std::vector<std::string> model_words = words_of(model);
  std::sort(model_words.begin(), model_words.end());
  return all_words_in(normalise_words(words), model_words);
}

}  // namespace bmgpu::core
