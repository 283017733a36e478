// The NVML worker as a program of its own.
#include "agent/gpu/probe.h"

int main(int argc, char** argv) { return bmgpu::agent::nvml_worker_main(argc, argv); }
