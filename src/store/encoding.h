// Core events <-> the bytes of journal_schema.proto. The one place that knows the schema.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/events.h"

namespace bmgpu::store {

// The version that encode() writes; decode() reads it and every older one. A fixture per released
// version lies in tests/store/data.
inline constexpr std::int64_t kSchemaVersion = 3;

// The most bytes that one encoded list may have.
inline constexpr std::size_t kEncodedBytesMax = std::size_t{256} << 20;

// Keeps its buffers from call to call, so that a steady stream of batches allocates little.
// One thread at a time.
class EventEncoder {
 public:
  EventEncoder();
  ~EventEncoder();
  EventEncoder(const EventEncoder&) = delete;
  EventEncoder& operator=(const EventEncoder&) = delete;

  // The bytes of `events` in order; valid until the next call. REQUIRES: they fit into
  // kEncodedBytesMax.
  std::string_view encode(std::span<const core::Event> events);

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

// Appends the events of `bytes` to `events`. DataLoss, and `events` unchanged, if the bytes are
// torn, hold a value that is out of its range, or a kind that this version does not know.
Result<void> decode_events(std::string_view bytes, std::vector<core::Event>& events);

// What a stored row is checked against: XXH3, 64 bits. Not for security.
std::uint64_t checksum(std::string_view bytes);

}  // namespace bmgpu::store
