#include "cli/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace bmgpu::cli {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::int64_t kExtensionBytesMax = 1024 * 1024;
constexpr std::int64_t kOctalSizeMax = 077777777777;

// Offsets and sizes of ustar's fields.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kOwner{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kSum{148, 8};
constexpr Field kLink{157, 100};
constexpr Field kMagic{257, 6};
constexpr Field kPrefix{345, 155};
constexpr std::size_t kKindAt = 156;

using Block = std::array<char, kBlock>;

Error damaged(std::string_view why) {
  return {ErrorCode::DataLoss, "the archive is damaged: " + std::string(why)};
}

void put_octal(Block& block, Field field, std::int64_t value) {
  for (std::size_t i = field.size - 1; i-- > 0;) {
    block[field.at + i] = static_cast<char>('0' + (value & 7));
    value >>= 3;
  }
}

void put_text(Block& block, Field field, std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), field.size), block.data() + field.at);
}

std::int64_t sum_of(std::string_view block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool in_sum = i >= kSum.at && i < kSum.at + kSum.size;
    sum += in_sum ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string text_of(std::string_view block, Field field) {
  const std::string_view bytes = block.substr(field.at, field.size);
  return std::string(bytes.substr(0, std::min(bytes.find('\0'), bytes.size())));
}

// Octal, or GNU's base 256 for large values; -1 if it is neither.
std::int64_t number_of(std::string_view block, Field field) {
  std::string_view bytes = block.substr(field.at, field.size);
  if ((static_cast<unsigned char>(bytes.front()) & 0x80) != 0) {
    std::int64_t value = static_cast<unsigned char>(bytes.front()) & 0x3f;
    for (const char c : bytes.substr(1)) {
      if (value > (std::int64_t{1} << 54)) {
        return -1;
      }
      value = (value << 8) | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::int64_t value = 0;
  bool digits = false;
  for (const char c : bytes) {
    if (c == ' ' && !digits) {
      continue;
    }
    if (c == '\0' || c == ' ') {
      break;
    }
    if (c < '0' || c > '7') {
      return -1;
    }
    digits = true;
    value = value * 8 + (c - '0');
  }
  return value;
}

std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;  // blank, '=' and newline
  std::size_t size = rest + 1;
  while (std::to_string(size).size() + rest != size) {
    ++size;
  }
  return std::to_string(size) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

Block make_header(std::string_view path, char kind, const TarEntry& entry, std::int64_t size) {
  Block block{};
  put_text(block, kName, path);
  put_octal(block, kMode, entry.mode & 07777);
  put_octal(block, kOwner, 0);
  put_octal(block, kGroup, 0);
  put_octal(block, kSize, std::min(size, kOctalSizeMax));
  put_octal(block, kTime, std::clamp<std::int64_t>(entry.modified_unix_s, 0, kOctalSizeMax));
  block[kKindAt] = kind;
  put_text(block, kLink, entry.link_target);
  put_text(block, kMagic, std::string_view("ustar\0", 6));
  block[kMagic.at + 6] = '0';
  block[kMagic.at + 7] = '0';
  put_octal(block, {kSum.at, 7}, sum_of({block.data(), kBlock}));
  block[kSum.at + 7] = ' ';
  return block;
}

char letter_of(TarEntry::Kind kind) {
  switch (kind) {
    case TarEntry::Kind::File:
      return '0';
    case TarEntry::Kind::HardLink:
      return '1';
    case TarEntry::Kind::Link:
      return '2';
    case TarEntry::Kind::Device:
      return '3';
    case TarEntry::Kind::Folder:
      return '5';
    case TarEntry::Kind::Pipe:
      return '6';
    case TarEntry::Kind::Other:
      break;
  }
  check(false, "tar: this kind of entry is only read");
  return 0;
}

TarEntry::Kind kind_of(char letter) {
  switch (letter) {
    case '\0':
    case '0':
    case '7':
      return TarEntry::Kind::File;
    case '1':
      return TarEntry::Kind::HardLink;
    case '2':
      return TarEntry::Kind::Link;
    case '3':
    case '4':
      return TarEntry::Kind::Device;
    case '5':
      return TarEntry::Kind::Folder;
    case '6':
      return TarEntry::Kind::Pipe;
    default:
      return TarEntry::Kind::Other;
  }
}

std::int64_t padding_of(std::int64_t size) {
  constexpr auto kSigned = static_cast<std::int64_t>(kBlock);
  return (kSigned - size % kSigned) % kSigned;
}

}  // namespace

Result<void> TarWriter::header(const TarEntry& entry) {
  const std::string path = entry.path + (entry.kind == TarEntry::Kind::Folder ? "/" : "");
  const std::int64_t size = entry.kind == TarEntry::Kind::File ? entry.size : 0;
  std::string records;
  records += path.size() > kName.size ? pax_record("path", path) : "";
  records += entry.link_target.size() > kLink.size ? pax_record("linkpath", entry.link_target) : "";
  records += size > kOctalSizeMax ? pax_record("size", std::to_string(size)) : "";
  if (!records.empty()) {
    const auto bytes = static_cast<std::int64_t>(records.size());
    const Block block = make_header("pax", 'x', TarEntry(), bytes);
    Result<void> put = sink_({block.data(), kBlock});
    put = put ? sink_(records) : put;
    put = put ? pad(bytes) : put;
    if (!put) {
      return put;
    }
  }
  const Block block = make_header(path, letter_of(entry.kind), entry, size);
  return sink_({block.data(), kBlock});
}

Result<void> TarWriter::pad(std::int64_t size) {
  const std::string zeros(static_cast<std::size_t>(padding_of(size)), '\0');
  return zeros.empty() ? Result<void>() : sink_(zeros);
}

Result<void> TarWriter::finish() { return sink_(std::string(2 * kBlock, '\0')); }

Result<void> TarReader::take(std::string_view bytes) {
  while (!bytes.empty() && state_ != State::End) {
    if (state_ == State::Header) {
      const std::size_t wanted = std::min(kBlock - block_.size(), bytes.size());
      block_.append(bytes.substr(0, wanted));
      bytes.remove_prefix(wanted);
      if (block_.size() == kBlock) {
        if (Result<void> taken = take_header(block_); !taken) {
          return taken;
        }
        block_.clear();
      }
      continue;
    }
    const auto content = std::min<std::int64_t>(left_, static_cast<std::int64_t>(bytes.size()));
    const std::string_view piece = bytes.substr(0, static_cast<std::size_t>(content));
    if (state_ == State::Extension) {
      extension_ += piece;
    } else if (!piece.empty()) {
      if (Result<void> taken = target_.content(piece); !taken) {
        return taken;
      }
    }
    left_ -= content;
    bytes.remove_prefix(piece.size());
    if (left_ > 0) {
      continue;
    }
    const auto skipped = std::min<std::int64_t>(padding_, static_cast<std::int64_t>(bytes.size()));
    padding_ -= skipped;
    bytes.remove_prefix(static_cast<std::size_t>(skipped));
    if (padding_ == 0) {
      Result<void> ended = state_ == State::Extension ? take_extension() : target_.end();
      state_ = State::Header;
      if (!ended) {
        return ended;
      }
    }
  }
  return {};
}

Result<void> TarReader::finish() const {
  const bool whole = state_ == State::End || (state_ == State::Header && block_.empty());
  return whole ? Result<void>() : damaged("it ends in the middle of an entry");
}

Result<void> TarReader::take_header(std::string_view block) {
  if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) {
    state_ = State::End;
    return {};
  }
  const std::int64_t size = number_of(block, kSize);
  const std::int64_t mode = number_of(block, kMode);
  if (number_of(block, kSum) != sum_of(block) || size < 0 || mode < 0) {
    return damaged("a header's checksum or numbers are wrong");
  }
  const char kind = block[kKindAt];
  if (kind == 'x' || kind == 'L' || kind == 'K' || kind == 'g') {
    if (size > kExtensionBytesMax) {
      return damaged("an extended header is larger than 1 MiB");
    }
    extension_kind_ = kind;
    extension_.clear();
    left_ = size;
    padding_ = padding_of(size);
    state_ = State::Extension;
    return size == 0 ? take_extension() : Result<void>();
  }
  TarEntry entry = std::exchange(next_, {});
  const std::int64_t entry_size = next_size_ >= 0 ? std::exchange(next_size_, -1) : size;
  if (entry.path.empty()) {
    const bool ustar = block.substr(kMagic.at, 5) == "ustar" && block[kMagic.at + 5] == '\0';
    const std::string prefix = ustar ? text_of(block, kPrefix) : "";
    entry.path = (prefix.empty() ? "" : prefix + "/") + text_of(block, kName);
  }
  if (entry.link_target.empty()) {
    entry.link_target = text_of(block, kLink);
  }
  entry.mode = static_cast<std::uint32_t>(mode & 07777);
  entry.kind = kind_of(kind);
  entry.size = entry.kind == TarEntry::Kind::File ? entry_size : 0;
  if (Result<void> begun = target_.begin(entry); !begun) {
    return begun;
  }
  return begin_content(
      entry.kind == TarEntry::Kind::File || entry.kind == TarEntry::Kind::Other ? entry_size : 0);
}

Result<void> TarReader::begin_content(std::int64_t size) {
  left_ = size;
  padding_ = padding_of(size);
  state_ = size == 0 ? State::Header : State::Content;
  return size == 0 ? target_.end() : Result<void>();
}

Result<void> TarReader::take_extension() {
  state_ = State::Header;
  if (extension_kind_ == 'L' || extension_kind_ == 'K') {
    std::string& field = extension_kind_ == 'L' ? next_.path : next_.link_target;
    field = extension_.substr(0, std::min(extension_.find('\0'), extension_.size()));
    return {};
  }
  std::string_view rest = extension_;
  while (extension_kind_ == 'x' && !rest.empty()) {
    std::size_t size = 0;
    const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (failed != std::errc() || size > rest.size() || size < digits + 3 || *end != ' ') {
      return damaged("a pax header cannot be read");
    }
    const std::string_view record = rest.substr(digits + 1, size - digits - 2);
    rest.remove_prefix(size);
    const std::size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals);
    const std::string value(record.substr(std::min(equals + 1, record.size())));
    if (key == "path") {
      next_.path = value;
    } else if (key == "linkpath") {
      next_.link_target = value;
    } else if (key == "size") {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), next_size_);
      if (parsed.ec != std::errc() || next_size_ < 0) {
        return damaged("a pax header has no valid size");
      }
    }
  }
  return {};
}

}  // namespace bmgpu::cli
