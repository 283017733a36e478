// The words by which people name a GPU: "A100 80GB" finds "NVIDIA A100 80GB PCIe"; "A10" does not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bmgpu::core {

// The words of `text`, lower-case, in order: runs of [a-z0-9], every other byte separates.
// "nvidia" is not a word.
std::vector<std::string> words_of(std::string_view text);

// The same joined by one space: how words are stored and compared. "A100-80GB" → "a100 80gb".
std::string normalise_words(std::string_view text);

// Whether each word of `words` (normalised) is one of `model_words` (sorted).
bool all_words_in(std::string_view words, const std::vector<std::string>& model_words);

// Whether each word of `words` is a word of `model`.
bool words_match(std::string_view words, std::string_view model);

}  // namespace bmgpu::core
