#include "sim/chaos/seed_runner.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace bmgpu::sim {
namespace {

constexpr std::uint64_t kSeedsPerProcess = 10;
// Lines of the pipe: a seed begins, its result, a rule that it broke, a line of its trace. Any
// other line is what the process said on standard error.
constexpr char kBegins = '\x01';
constexpr char kEnds = '\x02';
constexpr char kBroke = '\x03';
constexpr char kTraced = '\x04';

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) {
      std::_Exit(1);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void say(char kind, const std::string& text) { write_all(kind + text + "\n"); }

// check() aborts in the middle of a run: its state is whole, only the run cannot go on.
void on_abort(int) {
  for (const std::string& line : last_trace()) {
    say(kTraced, line);
  }
  std::_Exit(1);
}

SeedResult run_once_or_twice(std::uint64_t seed, const WorldOptions& options) {
  SeedResult result = run_seed(seed, options);
  if (seed % kTwiceEvery != 0 || result.violation) {
    return result;
  }
  const SeedResult again = run_seed(seed, options);
  if (again.digest != result.digest) {
    result.violation = Violation{"determinism", "two runs have different digests", Instant()};
  }
  return result;
}

[[noreturn]] void run_group(SeedRange seeds, const WorldOptions& options, int pipe) {
  ::dup2(pipe, STDERR_FILENO);
  std::signal(SIGABRT, on_abort);
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    say(kBegins, std::to_string(seed));
    const SeedResult result = run_once_or_twice(seed, options);
    if (result.violation) {
      say(kBroke, std::to_string(result.violation->at.unix_ms()) + " " + result.violation->rule +
                      " " + result.violation->detail);
      for (const std::string& line : result.trace) {
        say(kTraced, line);
      }
    }
    say(kEnds, std::to_string(result.digest) + " " + std::to_string(result.actions) + " " +
                   std::to_string(result.core_events));
  }
  std::_Exit(0);
}

template <typename Number>
std::string_view take_number(std::string_view text, Number& number) {
  const char* end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return text.empty() ? text : text.substr(1);
}

// What one process says, line by line.
class Group {
 public:
  Group(SeedRange seeds, const WorldOptions& options) : seeds_(seeds) {
    int ends[2];
    check(::pipe(ends) == 0, "sim: no pipe");
    std::fflush(nullptr);
    process_ = ::fork();
    check(process_ >= 0, "sim: no process");
    if (process_ == 0) {
      ::close(ends[0]);
      run_group(seeds, options, ends[1]);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }

  int pipe() const { return pipe_; }

  // False: it has ended.
  bool read(const std::function<void(const SeedResult&)>& done) {
    char buffer[4096];
    const ssize_t bytes = ::read(pipe_, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) {
      return true;
    }
    text_.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    std::size_t from = 0;
    for (std::size_t end = text_.find('\n'); end != std::string::npos;
         end = text_.find('\n', from)) {
      take_line(std::string_view(text_).substr(from, end - from), done);
      from = end + 1;
    }
    text_.erase(0, from);
    if (bytes > 0) {
      return true;
    }
    ::close(pipe_);
    ::waitpid(process_, nullptr, 0);
    if (running_) {
      if (!result_.violation) {
        result_.violation = Violation{"check", said_, Instant()};
      }
      done(result_);
    }
    return false;
  }

  // Those that an abort left undone.
  SeedRange rest() const { return {running_ ? result_.seed + 1 : next_, seeds_.last}; }

 private:
  void take_line(std::string_view line, const std::function<void(const SeedResult&)>& done) {
    const char kind = line.empty() ? '\0' : line.front();
    std::string_view text = line.empty() ? line : line.substr(1);
    if (kind == kBegins) {
      result_ = SeedResult();
      take_number(text, result_.seed);
      running_ = true;
    } else if (kind == kBroke) {
      std::int64_t at = 0;
      text = take_number(text, at);
      const std::size_t blank = text.find(' ');
      result_.violation = Violation{std::string(text.substr(0, blank)),
                                    std::string(text.substr(blank + 1)), Instant(at)};
    } else if (kind == kTraced) {
      result_.trace.emplace_back(text);
    } else if (kind == kEnds) {
      text = take_number(text, result_.digest);
      text = take_number(text, result_.actions);
      take_number(text, result_.core_events);
      running_ = false;
      next_ = result_.seed + 1;
      done(result_);
    } else {
      said_ += (said_.empty() ? "" : "; ") + std::string(line);
    }
  }

  SeedRange seeds_;
  pid_t process_ = -1;
  int pipe_ = -1;
  std::string text_;
  std::string said_;
  SeedResult result_;
  bool running_ = false;
  std::uint64_t next_ = seeds_.first;
};

}  // namespace

void run_seeds(SeedRange seeds, unsigned jobs, const WorldOptions& options,
               const std::function<void(const SeedResult&)>& done) {
  std::vector<SeedRange> waiting;
  for (std::uint64_t first = seeds.first; first <= seeds.last; first += kSeedsPerProcess) {
    waiting.push_back({first, std::min(seeds.last, first + kSeedsPerProcess - 1)});
  }
  std::reverse(waiting.begin(), waiting.end());
  std::vector<Group> groups;
  while (!waiting.empty() || !groups.empty()) {
    while (!waiting.empty() && groups.size() < std::max(jobs, 1U)) {
      groups.emplace_back(waiting.back(), options);
      waiting.pop_back();
    }
    std::vector<pollfd> pipes;
    for (const Group& group : groups) {
      pipes.push_back({group.pipe(), POLLIN, 0});
    }
    ::poll(pipes.data(), pipes.size(), -1);
    for (std::size_t i = groups.size(); i-- > 0;) {
      if (pipes[i].revents != 0 && !groups[i].read(done)) {
        const SeedRange rest = groups[i].rest();
        if (rest.first <= rest.last) {
          waiting.push_back(rest);
        }
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
}

}  // namespace bmgpu::sim
