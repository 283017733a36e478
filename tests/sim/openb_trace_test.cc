// Reading traces: what is accepted, and that bad input is named by file, line and column.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/csv.h"
#include "sim/text_file.h"
#include "sim/workloads/openb_trace.h"

namespace bmgpu::sim {
namespace {

using testing::HasSubstr;

const char* const kNodes = "b,8000,100,2,T4\na,4000,50,1,G2\ncpu,8000,100,0,\n";
const char* const kPods = "p2,1000,10,1,500,T4|P100\np1,2000,20,2,1000,\np3,500,5,0,0,T4\n";

std::string error_of(const std::string& nodes, const std::string& pods) {
  const TextFile node_file("nodes.csv", nodes);
  const TextFile pod_file("pods.csv", pods);
  const auto trace = read_openb_trace(node_file.path(), pod_file.path());
  if (trace) {
    return "";
  }
  EXPECT_EQ(trace.error().code, ErrorCode::InvalidArgument);
  return trace.error().message;
}

TEST(OpenbTraceTest, ReadsNodesWithGpusAndDistinctRequestsByName) {
  const TextFile nodes("nodes.csv", node_csv(kNodes));
  const TextFile pods("pods.csv", pod_csv(kPods));
  const auto trace = read_openb_trace(nodes.path(), pods.path());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(trace->models, testing::ElementsAre("T4", "G2", "P100"));
  ASSERT_EQ(trace->nodes.size(), 2u);
  EXPECT_EQ(trace->nodes[0].name, "a");
  EXPECT_EQ(trace->nodes[1].gpus.size(), 2u);
  EXPECT_EQ(trace->gpu_thousandths(), 3'000);
  ASSERT_EQ(trace->pods.size(), 3u);
  EXPECT_EQ(trace->requests[trace->pods[0]], (Request{2000, 20, 2, 1000, 0}));
  EXPECT_EQ(trace->requests[trace->pods[1]], (Request{1000, 10, 1, 500, 0b101}));
  EXPECT_EQ(trace->requests[trace->pods[2]], (Request{500, 5, 0, 0, 0}));
}

TEST(OpenbTraceTest, ModelsOfPodsAndLineEndsOfWindowsAreOptional) {
  EXPECT_EQ(error_of(node_csv("a,8000,100,2,T4\r\n"),
                     "num_gpu,gpu_milli,name,cpu_milli,memory_mib\r\n1,1000,p,1,1\r\n"),
            "");
}

TEST(OpenbTraceTest, NamesLineAndColumnOfABadField) {
  const std::string nodes = node_csv(kNodes);
  EXPECT_EQ(error_of(nodes, pod_csv(kPods)), "");
  EXPECT_THAT(error_of(nodes, pod_csv("p,1000,10,1,500,\nq,-5,10,1,500,\n")),
              HasSubstr("pods.csv:3: column 'cpu_milli': '-5' is not a whole number from 0"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,1000,,1,500,\n")),
              HasSubstr("pods.csv:2: column 'memory_mib': ''"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,1000,10,2,500,\n")),
              HasSubstr("column 'gpu_milli': '500' is not a whole number from 1000 to 1000"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,1000,10,1,0,\n")), HasSubstr("column 'gpu_milli': '0'"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,1000,10,65,1000,\n")), HasSubstr("column 'num_gpu'"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,99999999999999999999,10,1,1000,\n")),
              HasSubstr("column 'cpu_milli'"));
  EXPECT_THAT(error_of(nodes, pod_csv("p,1e3,10,1,1000,\n")), HasSubstr("column 'cpu_milli'"));
  EXPECT_THAT(error_of(node_csv("a,8000,100,x\x01,T4\n"), pod_csv(kPods)),
              HasSubstr("nodes.csv:2: column 'gpu': 'x?'"));
}

TEST(OpenbTraceTest, NamesAMissingColumn) {
  EXPECT_THAT(error_of(node_csv(kNodes), "name,cpu_milli,num_gpu,gpu_milli\np,1,1,1000\n"),
              HasSubstr("pods.csv:1: no column 'memory_mib'; the columns are 'name', 'cpu_milli'"));
  EXPECT_THAT(error_of("sn,cpu_milli,memory_mib,gpu\na,1,1,1\n", pod_csv(kPods)),
              HasSubstr("nodes.csv:1: no column 'model'"));
}

TEST(OpenbTraceTest, RefusesRowsOfAnotherLengthEmptyFilesAndTwins) {
  EXPECT_THAT(error_of(node_csv("a,8000,100,2\n"), pod_csv(kPods)),
              HasSubstr("nodes.csv:2: 4 fields, but the header has 5 columns"));
  EXPECT_THAT(error_of("", pod_csv(kPods)), HasSubstr("nodes.csv:0: no header line"));
  EXPECT_THAT(error_of(node_csv(""), pod_csv(kPods)), HasSubstr("no node with a GPU"));
  EXPECT_THAT(error_of(node_csv(kNodes), pod_csv("p,1,1,0,0,\n")),
              HasSubstr("no pod asks for a GPU"));
  EXPECT_THAT(error_of(node_csv("a,1,1,1,T4\na,1,1,1,T4\n"), pod_csv(kPods)),
              HasSubstr("two nodes are named 'a'"));
  EXPECT_THAT(read_openb_trace("nowhere/nodes.csv", "x").error().message,
              HasSubstr("nowhere/nodes.csv: cannot be opened"));
}

TEST(OpenbTraceTest, RefusesMoreModelsThanFitAMask) {
  std::string names = "m0";
  for (int model = 1; model < 64; ++model) {
    names += "|m" + std::to_string(model);
  }
  const std::string nodes = node_csv("a,8000,100,2,m0\n");
  EXPECT_EQ(error_of(nodes, pod_csv("p,1,1,1,1000," + names + "\n")), "");
  EXPECT_THAT(error_of(nodes, pod_csv("p,1,1,1,1000," + names + "|more\n")),
              HasSubstr("pods.csv:2: column 'gpu_spec': more than 64 different models"));
}

TEST(OpenbTraceTest, GarbageEndsAtItsFirstLineAndIsNeverHeldWhole) {
  const std::string garbage(50'000'000, 'x');
  EXPECT_THAT(error_of(garbage, pod_csv(kPods)), HasSubstr("nodes.csv:1: longer than"));
  std::string lines = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int line = 0; line < 1'000'000; ++line) {
    lines += "!\n";
  }
  EXPECT_THAT(error_of(lines, pod_csv(kPods)), HasSubstr("nodes.csv:2: 1 fields"));
  EXPECT_THAT(error_of(std::string(3'000, ',') + "\n", pod_csv(kPods)),
              HasSubstr("nodes.csv:1: more than 64 columns"));
}

TEST(CsvTest, RefusesMoreRowsThanItsLimit) {
  std::string text = "n\n";
  for (std::size_t row = 0; row < CsvLimits::kRowsMax; ++row) {
    text += "1\n";
  }
  const auto rows_of = [](const TextFile& file) {
    auto csv = CsvReader::open(file.path());
    std::size_t rows = 0;
    while (csv->next()) {
      ++rows;
    }
    return std::pair(rows, csv->failed() ? csv->error().message : "");
  };
  EXPECT_EQ(rows_of(TextFile("rows.csv", text)), std::pair(CsvLimits::kRowsMax, std::string()));
  EXPECT_THAT(rows_of(TextFile("rows.csv", text + "1\n")).second, HasSubstr("more than 1000000"));
}

}  // namespace
}  // namespace bmgpu::sim
