// Each file of tests/core/scenarios is run and compared with what it says, line by line.
// BM_SCENARIOS_WRITE=1 rewrites the files with what the market really says: then read the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/support/text.h"

namespace bmgpu::core {
namespace {

std::vector<std::filesystem::path> scenarios() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BM_SCENARIOS)) {
    if (entry.path().extension() == ".txt") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class ScenarioTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScenarioTest, GoesAsWritten) {
  std::ifstream file(GetParam());
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(expected.empty());
  const std::string actual = run_scenario(expected);
  if (std::getenv("BM_SCENARIOS_WRITE") != nullptr) {
    std::ofstream(GetParam()) << actual;
  }
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioTest, testing::ValuesIn(scenarios()), [](const auto& test) {
  std::string name = test.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace bmgpu::core
