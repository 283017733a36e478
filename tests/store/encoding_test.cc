#include "store/encoding.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "store/event_maker.h"

namespace bmgpu::store {
namespace {

std::vector<core::Event> decoded(std::string_view bytes) {
  std::vector<core::Event> events;
  const Result<void> read = decode_events(bytes, events);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  return events;
}

TEST(EncodingTest, MakerKnowsEveryKind) {
  EventMaker maker(1);
  for (std::size_t kind = 0; kind < EventMaker::kKinds; ++kind) {
    EXPECT_EQ(maker.of_kind(kind).index(), kind);
  }
}

RC_GTEST_PROP(EncodingTest, EveryKindRoundTrips, (std::uint64_t seed)) {
  EventMaker maker(seed);
  EventEncoder encoder;
  for (std::size_t kind = 0; kind < EventMaker::kKinds; ++kind) {
    const std::vector<core::Event> events{maker.of_kind(kind)};
    RC_ASSERT((decoded(encoder.encode(events)) == events));
  }
}

RC_GTEST_PROP(EncodingTest, ListsKeepTheirOrder, (std::uint64_t seed)) {
  EventMaker maker(seed);
  EventEncoder encoder;
  const std::vector<core::Event> events = maker.list(maker.prng().below(40));
  RC_ASSERT((decoded(encoder.encode(events)) == events));
}

RC_GTEST_PROP(EncodingTest, DamagedBytesAreReadOrRefusedWhole, (std::uint64_t seed)) {
  EventMaker maker(seed);
  EventEncoder encoder;
  std::string bytes(encoder.encode(maker.list(5)));
  const std::size_t at = maker.prng().below(bytes.size());
  if (maker.prng().chance(1, 2)) {
    bytes.resize(at);
  } else {
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << maker.prng().below(8)));
  }
  std::vector<core::Event> events = maker.list(1);
  const std::vector<core::Event> before = events;
  const Result<void> read = decode_events(bytes, events);
  if (!read.ok()) {
    RC_ASSERT((read.error().code == ErrorCode::DataLoss));
    RC_ASSERT((events == before));
  }
}

TEST(EncodingTest, RefusesAKindOfALaterVersion) {
  // An EventList with one Event whose only field is number 900.
  const std::string bytes("\x0a\x03\xa0\x38\x00", 5);
  std::vector<core::Event> events;
  const Result<void> read = decode_events(bytes, events);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::DataLoss);
  EXPECT_NE(read.error().message.find("kind of event"), std::string::npos) << read.error().message;
  EXPECT_TRUE(events.empty());
}

TEST(EncodingTest, RefusesAnEnumValueOfALaterVersion) {
  // gpu_state_changed {gpu: 1, state: 77}, and as a control state: 1.
  const auto with_state = [](char state) {
    return std::string("\x0a\x06\x3a\x04\x08\x01\x10", 7) + state;
  };
  std::vector<core::Event> events;
  EXPECT_FALSE(decode_events(with_state(77), events).ok());
  EXPECT_TRUE(decode_events(with_state(1), events).ok());
  const std::vector<core::Event> expected{core::GpuStateChanged{GpuId(1), core::GpuState::Free}};
  EXPECT_EQ(events, expected);
}

TEST(EncodingTest, ChecksumSeesEveryBit) {
  const std::string bytes = "a row of a journal";
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(checksum(other), checksum(bytes));
  }
}

}  // namespace
}  // namespace bmgpu::store
