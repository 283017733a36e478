// The shim as a program of its own, for tests and benchmarks: bm-agent shim without the agent.
#include <cstdio>

#include "agent/runtime/shim.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bm-test-shim ATTEMPT_DIR\n");
    return 2;
  }
  return bmgpu::agent::shim_main(argv[1]);
}
