// Not an NVML: it has no way to get a device handle.
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 0;
  return 0;
}
}
