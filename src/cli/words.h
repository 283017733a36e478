// Splits a command line into words as a POSIX shell does, without running a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::cli {

struct Words {
  std::vector<std::string> words;
  // The first unquoted piece that a shell would act on ("|", "&&", "$HOME", ">"), "" if none. It
  // is passed to the job as it stands, which is seldom what its author meant.
  std::string shell_syntax;
};

// Quotes ('…', "…") and backslashes as in XCU 2.2; blanks and newlines separate words; nothing is
// expanded and '#' is an ordinary character. An open quote or a final backslash: InvalidArgument.
Result<Words> split_words(std::string_view line);

// The words as one line that split_words() and a shell read back.
std::string join_words(const std::vector<std::string>& words);

}  // namespace bmgpu::cli
