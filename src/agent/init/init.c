// bm-init: process 1 of a job's container. Static and small, because it runs inside any image.
//
// Before the job: tells the shim which GPU device nodes can be opened here, and waits for "go".
// After: forwards signals to the job's process group, reaps orphans, says how the job ended. It is
// also one of the hands that end a job: at the end of the lease it ends everything by itself,
// whether the shim lives or not, because a process 1 that exits takes its pid namespace with it.
//
// The socket is unlinked by the shim once it was accepted, and this process is not dumpable, so the
// job can reach neither. Protocol (lines, ASCII):
//   init -> shim  "device PATH_MINOR MAJOR MINOR ERRNO"*  "ready"
//   shim -> init  "go"
//   init -> shim  "started" | "failed ERRNO"    then    "exit CODE" | "signal NUMBER"
//   shim -> init  "bye"  (or the end of the stream): the exit was noted, leave now
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kNotReleased = 125,     // exit code: "go" never came
  kMinors = 256,
  kByeWaitMs = 300,
  kLateMs = 400,          // after the lease's end the shim has this long to act first
  kGraceMs = 5000,        // between SIGTERM and the end, as in the shim
};
static const char kSocket[] = "/.bm/gate/shim.sock";
static const char kDeadline[] = "/.bm/gate/deadline";  // "BOOTTIME_NS UNIX_MS\n"

static pid_t job = -1;
static int term_sent = 0;

static int64_t boottime_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int connect_shim(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, kSocket, sizeof kSocket);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
    return -1;
  }
  return fd;
}

// A node that was not granted gives EPERM (or is missing); anything else means that it was. No
// O_CREAT: that would make a plain file of a missing node.
static void report_devices(int shim) {
  for (int minor_number = 0; minor_number < kMinors; ++minor_number) {
    char path[32];
    snprintf(path, sizeof path, "/dev/nvidia%d", minor_number);
    const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
      close(fd);
    }
    if (error == ENOENT || error == EPERM || error == EACCES) {
      continue;
    }
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISCHR(info.st_mode)) {
      memset(&info, 0, sizeof info);
    }
    dprintf(shim, "device %d %u %u %d\n", minor_number, major(info.st_rdev), minor(info.st_rdev),
            error);
  }
  dprintf(shim, "ready\n");
}

// 1 once "go" came, 0 at the end of the stream.
static int wait_for_go(int shim) {
  char text[8];
  size_t used = 0;
  while (used < 3) {
    const ssize_t n = read(shim, text + used, 3 - used);
    if (n <= 0) {
      return 0;
    }
    used += (size_t)n;
  }
  return memcmp(text, "go\n", 3) == 0;
}

// The job's own end of the fork; returns only through `report` with errno.
static void run_job(char** command, const sigset_t* signals, int report) {
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, signals, NULL);
  execvp(command[0], command);
  const int error = errno;
  ssize_t ignored = write(report, &error, sizeof error);
  (void)ignored;
  _exit(error == ENOENT ? 127 : 126);
}

// 0, or the errno with which the command could not be run.
static int start_job(char** command, const sigset_t* signals) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    return errno;
  }
  job = fork();
  if (job == 0) {
    run_job(command, signals, report[1]);
  }
  const int fork_error = errno;
  close(report[1]);
  if (job < 0) {
    close(report[0]);
    return fork_error;
  }
  setpgid(job, job);
  int error = 0;
  if (read(report[0], &error, sizeof error) != (ssize_t)sizeof error) {
    error = 0;
  }
  close(report[0]);
  return error;
}

static void signal_job(int number) {
  if (number == SIGTERM) {
    term_sent = 1;
  }
  kill(-job, number);
}

// Reaps whoever ended. Returns 1 with *status once the job itself did.
static int reap(int* status) {
  int one = 0;
  pid_t pid = 0;
  int ended = 0;
  while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
    if (pid == job) {
      *status = one;
      ended = 1;
    }
  }
  return ended;
}

static void arm(int timer, int64_t at_ns) {
  const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
                                               .tv_nsec = (long)(at_ns % 1000000000)}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

// The lease's end as the newest shim wrote it; far away if there is no such file.
static int64_t read_deadline_ns(void) {
  char text[64] = {0};
  const int fd = open(kDeadline, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const long long value = n > 0 ? strtoll(text, NULL, 10) : 0;
    if (value > 0) {
      return value;
    }
  }
  return INT64_MAX / 2;
}

// The lease's end has come, or the grace after it has. Never returns after the second.
static void on_timer(int timer, int shim) {
  uint64_t ticks = 0;
  ssize_t ignored = read(timer, &ticks, sizeof ticks);
  (void)ignored;
  const int64_t late = read_deadline_ns() + (int64_t)kLateMs * 1000000;
  const int64_t last = late + (int64_t)kGraceMs * 1000000;
  const int64_t now = boottime_ns();
  if (now < late) {
    arm(timer, late);
  } else if (now < last) {
    if (!term_sent) {
      signal_job(SIGTERM);
    }
    arm(timer, last);
  } else {
    dprintf(shim, "signal %d\n", SIGKILL);
    _exit(128 + SIGKILL);
  }
}

static int report_end(int shim, int status) {
  const int signalled = WIFSIGNALED(status);
  const int number = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  if (dprintf(shim, "%s %d\n", signalled ? "signal" : "exit", number) > 0) {
    // The shim reads the memory cgroup before this process, and with it the cgroup, is gone.
    struct pollfd wait = {.fd = shim, .events = POLLIN};
    poll(&wait, 1, kByeWaitMs);
  }
  return signalled ? 128 + number : number;
}

static int supervise(int shim, int signals) {
  const int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  arm(timer, read_deadline_ns() + (int64_t)kLateMs * 1000000);
  for (;;) {
    struct pollfd events[2] = {{.fd = signals, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    if (poll(events, 2, -1) < 0) {
      continue;
    }
    struct signalfd_siginfo info;
    if ((events[0].revents & POLLIN) && read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
      if (info.ssi_signo != SIGCHLD) {
        signal_job((int)info.ssi_signo);
      }
      int status = 0;
      if (reap(&status)) {
        return report_end(shim, status);
      }
    }
    if (events[1].revents & POLLIN) {
      on_timer(timer, shim);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--canary") == 0) {
    return 0;
  }
  if (argc < 2) {
    dprintf(2, "bm-init: no command\n");
    return kNotReleased;
  }
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0);
  const int shim = connect_shim();
  if (shim < 0) {
    return kNotReleased;  // silently: what is said here is in the job's log
  }
  report_devices(shim);
  if (!wait_for_go(shim)) {
    return kNotReleased;
  }
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const int signals = signalfd(-1, &all, SFD_CLOEXEC);
  const int error = start_job(argv + 1, &before);
  if (error != 0) {
    dprintf(shim, "failed %d\n", error);
    return error == ENOENT ? 127 : 126;
  }
  dprintf(shim, "started\n");
  return supervise(shim, signals);
}
