#include "agent/log_forwarder.h"

#include <charconv>

#include "agent/attempt_table.h"
#include "agent/event_loop.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAcknowledgeLimit{10'000};
constexpr milliseconds kFullRetry{20};

std::string confirmed_path(const std::string& folder) { return folder + "/log.confirmed"; }

// "<next sequence> <offset>\n"
LogPosition read_confirmed(const std::string& folder) {
  LogPosition position;
  const Result<std::string> text = read_file(confirmed_path(folder), 128);
  if (!text) {
    return {};
  }
  const char* end = text->data() + text->size();
  const auto first = std::from_chars(text->data(), end, position.next_sequence);
  if (first.ec != std::errc() || first.ptr == end || position.next_sequence == 0) {
    return {};
  }
  const auto second = std::from_chars(first.ptr + 1, end, position.offset);
  return second.ec == std::errc() ? position : LogPosition{};
}

v1::LogStream stream_of(LogSource source) {
  switch (source) {
    case LogSource::Stdout:
      return v1::LOG_STREAM_STDOUT;
    case LogSource::Stderr:
      return v1::LOG_STREAM_STDERR;
    case LogSource::System:
      break;
  }
  return v1::LOG_STREAM_SYSTEM;
}

}  // namespace

LogForwarder::LogForwarder(EventLoop& loop, wire::Log& log, Options options)
    : loop_(loop), log_(log), options_(std::move(options)) {}

LogForwarder::~LogForwarder() = default;

void LogForwarder::add(const Key& key, const AttemptName& name, const std::string& folder) {
  if (feeds_.contains(key)) {
    return;
  }
  const LogPosition from = read_confirmed(folder);
  Feed feed{name.lease, name.rank, name.attempt, folder,      LogTail(folder + "/log", from),
            from,       from,      {},           0,           false,
            false,      false,     false,        Clock::now()};
  schedule(key, feeds_.emplace(key, std::move(feed)).first->second);
}

void LogForwarder::remove(const Key& key) { feeds_.erase(key); }

void LogForwarder::grown(const Key& key) {
  const auto at = feeds_.find(key);
  if (at != feeds_.end()) {
    schedule(key, at->second);
  }
}

void LogForwarder::ended(const Key& key) {
  const auto at = feeds_.find(key);
  if (at != feeds_.end() && !at->second.ended) {
    at->second.ended = true;
    schedule(key, at->second);
  }
}

void LogForwarder::schedule(const Key& key, Feed& feed) {
  if (!feed.scheduled && open_ && !feed.complete) {
    feed.scheduled = true;
    loop_.post([this, key] { pump(key); });
  }
}

// One batch a turn, so that no job's log keeps the others or the loop waiting.
void LogForwarder::pump(const Key& key) {
  const auto at = feeds_.find(key);
  if (at == feeds_.end()) {
    return;
  }
  Feed& feed = at->second;
  feed.scheduled = false;
  if (!open_ || feed.complete || feed.on_way_bytes >= kUnacknowledgedBytesMax) {
    return;  // an acknowledgement goes on with it
  }
  if (options_.queued_bytes() > kSessionBytesMax) {
    feed.scheduled = true;
    loop_.after(kFullRetry, [this, key] { pump(key); });
    return;
  }
  const LogPosition before = feed.tail.position();
  Result<std::vector<LogEntry>> lines = feed.tail.read(kBatchLinesMax, kBatchBytes / 2);
  if (!lines) {
    log_.error("a log cannot be read", {{"attempt", feed.folder}, {"why", lines.error().message}});
    lines = std::vector<LogEntry>();
  }
  bool sent = true;
  if (!lines->empty()) {
    sent = send_lines(feed, *lines);
  } else if (feed.ended && !feed.end_sent) {
    sent = send_end(feed);
  } else {
    return;
  }
  if (!sent) {
    feed.tail = LogTail(feed.folder + "/log", before);
    feed.scheduled = true;
    loop_.after(kFullRetry, [this, key] { pump(key); });
    return;
  }
  feed.progress = Clock::now();
  schedule(key, feed);
}

bool LogForwarder::send_lines(Feed& feed, const std::vector<LogEntry>& lines) {
  v1::AgentFrame frame;
  v1::LogAppend& append = *frame.mutable_log();
  append.set_lease(feed.lease);
  append.set_rank(feed.rank);
  append.set_attempt(feed.attempt);
  for (const LogEntry& entry : lines) {
    v1::LogLine& line = *append.add_lines();
    line.set_sequence(entry.sequence);
    line.set_time_unix_ms(entry.time_unix_ms);
    line.set_stream(stream_of(entry.source));
    line.set_text(entry.text);
    line.set_partial(entry.partial);
  }
  const std::size_t bytes = frame.ByteSizeLong();
  if (!options_.send(frame)) {
    return false;
  }
  feed.on_way.push_back({feed.tail.position(), bytes});
  feed.on_way_bytes += bytes;
  return true;
}

bool LogForwarder::send_end(Feed& feed) {
  v1::AgentFrame frame;
  v1::LogAppend& append = *frame.mutable_log();
  append.set_lease(feed.lease);
  append.set_rank(feed.rank);
  append.set_attempt(feed.attempt);
  append.set_complete(true);
  feed.end_sent = options_.send(frame);
  return feed.end_sent;
}

void LogForwarder::acknowledged(const v1::LogAck& ack) {
  const std::optional<Key> key = key_of({ack.lease(), ack.rank(), ack.attempt()});
  const auto at = key ? feeds_.find(*key) : feeds_.end();
  if (at == feeds_.end()) {
    return;
  }
  Feed& feed = at->second;
  feed.progress = Clock::now();
  while (!feed.on_way.empty() && feed.on_way.front().end.next_sequence <= ack.next_sequence()) {
    feed.confirmed = feed.on_way.front().end;
    feed.on_way_bytes -= feed.on_way.front().bytes;
    feed.on_way.pop_front();
  }
  if (ack.next_sequence() != 0 && ack.next_sequence() < feed.confirmed.next_sequence) {
    // bmd has less than it once said: it was restored from a backup. The lines are still here.
    log_.warning("the market asks for lines again",
                 {{"attempt", feed.folder}, {"from", ack.next_sequence()}});
    LogTail again(feed.folder + "/log");
    if (again.seek(ack.next_sequence())) {
      feed.confirmed = again.position();
      rewind(feed);
    }
  }
  if (ack.complete() && feed.ended && feed.on_way.empty() && !feed.complete) {
    feed.complete = true;
    keep(feed);
    options_.on_complete(*key);
    return;
  }
  schedule(*key, feed);
}

void LogForwarder::rewind(Feed& feed) {
  feed.tail = LogTail(feed.folder + "/log", feed.confirmed);
  feed.on_way.clear();
  feed.on_way_bytes = 0;
  feed.end_sent = false;
  feed.progress = Clock::now();
}

void LogForwarder::session_opened() {
  open_ = true;
  for (auto& [key, feed] : feeds_) {
    rewind(feed);
    schedule(key, feed);
  }
}

void LogForwarder::tick() {
  for (auto& [key, feed] : feeds_) {
    const bool waits = !feed.on_way.empty() || feed.end_sent;
    if (open_ && waits && !feed.complete && Clock::now() - feed.progress > kAcknowledgeLimit) {
      rewind(feed);
      schedule(key, feed);
    }
    keep(feed);
  }
}

void LogForwarder::keep(Feed& feed) {
  if (feed.confirmed == feed.kept) {
    return;
  }
  const std::string text = std::to_string(feed.confirmed.next_sequence) + " " +
                           std::to_string(feed.confirmed.offset) + "\n";
  if (write_file(confirmed_path(feed.folder), text)) {
    feed.kept = feed.confirmed;
  }
}

}  // namespace bmgpu::agent
