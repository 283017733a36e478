// The job of bench_first_line: prints CLOCK_BOOTTIME in nanoseconds as its first line.
#include <stdio.h>
#include <time.h>

int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  printf("BOOTTIME %lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
  return 0;
}
