#include "cli/copy_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/file.h"
#include "cli/text.h"
#include "cli/workdir.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kDepthMax = 64;
constexpr std::size_t kLinkBytesMax = 4096;

class Packer {
 public:
  explicit Packer(TarWriter& writer) : writer_(writer) {}

  // `folder` holds `name`; `path` is its name in the archive.
  Result<void> pack(int folder, const std::string& name, const std::string& path,
                    std::size_t depth) {
    struct stat facts {};
    const int follow = depth == 0 ? 0 : AT_SYMLINK_NOFOLLOW;  // the person named the first one
    if (::fstatat(folder, name.c_str(), &facts, follow) != 0) {
      return file_error("read", name, errno);
    }
    TarEntry entry{
        .path = path, .mode = facts.st_mode & 07777, .modified_unix_s = facts.st_mtim.tv_sec};
    if (S_ISLNK(facts.st_mode)) {
      return pack_link(folder, name, entry);
    }
    const int no_follow = depth == 0 ? 0 : O_NOFOLLOW;
    if (std::string special = special_file(facts.st_mode); !special.empty()) {
      count_.left_out.push_back({path, std::move(special)});
      return {};
    }
    const Descriptor opened(
        ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_follow));
    if (!opened.open() || ::fstat(opened.number(), &facts) != 0) {
      return file_error("open", name, errno);
    }
    if (S_ISDIR(facts.st_mode)) {
      entry.kind = TarEntry::Kind::Folder;
      return pack_folder(opened.number(), entry, depth);
    }
    entry.size = facts.st_size;
    return pack_file(opened.number(), entry);
  }

  CopyCount& count() { return count_; }

 private:
  Result<void> pack_folder(int folder, const TarEntry& entry, std::size_t depth) {
    if (depth == kDepthMax) {
      return Error{ErrorCode::InvalidArgument, entry.path + " is nested more than 64 deep"};
    }
    ++count_.folders;
    Result<void> done = writer_.header(entry);
    Result<std::vector<std::string>> names = read_folder(folder, entry.path);
    if (!names) {
      return names.error();
    }
    for (std::size_t i = 0; done && i < names->size(); ++i) {
      const std::string& name = (*names)[i];
      done = pack(folder, name, entry.path + "/" + name, depth + 1);
    }
    return done;
  }

  Result<void> pack_link(int folder, const std::string& name, TarEntry& entry) {
    std::string target(kLinkBytesMax, '\0');
    const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
    if (size < 0) {
      return file_error("read the link", entry.path, errno);
    }
    target.resize(static_cast<std::size_t>(size));
    entry.kind = TarEntry::Kind::Link;
    entry.link_target = std::move(target);
    ++count_.files;
    return writer_.header(entry);
  }

  Result<void> pack_file(int file, const TarEntry& entry) {
    Result<void> done = writer_.header(entry);
    std::array<char, 32768> buffer;
    std::int64_t left = entry.size;
    while (done && left > 0) {
      const auto wanted = static_cast<std::size_t>(
          std::min<std::int64_t>(left, static_cast<std::int64_t>(buffer.size())));
      const ssize_t got = ::read(file, buffer.data(), wanted);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return got < 0 ? file_error("read", entry.path, errno)
                       : Error{ErrorCode::Refused, entry.path + " shrank while it was copied"};
      }
      done = writer_.content({buffer.data(), static_cast<std::size_t>(got)});
      left -= got;
    }
    ++count_.files;
    count_.bytes += entry.size;
    return done ? writer_.pad(entry.size) : done;
  }

  TarWriter& writer_;
  CopyCount count_;
};

// "./a//b/" → {a, b}; nothing if a part is "..".
std::optional<std::vector<std::string>> safe_parts(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == ".." || part.find('\0') != std::string_view::npos) {
      return std::nullopt;
    }
    if (!part.empty() && part != ".") {
      parts.emplace_back(part);
    }
  }
  return parts;
}

class Unpacker final : public TreeTarget {
 public:
  Unpacker(Descriptor into, std::string root) : into_(std::move(into)), root_(std::move(root)) {}

  Result<void> begin(const TarEntry& entry) override {
    std::optional<std::vector<std::string>> parts = safe_parts(entry.path);
    if (!parts || parts->size() > kDepthMax) {
      return Error{ErrorCode::DataLoss,
                   "the archive holds a path that leads out: " + printable(entry.path)};
    }
    if (parts->empty()) {
      parts->push_back(root_);
    }
    parts->front() = root_;
    if (std::string why = why_left_out(entry, *parts); !why.empty()) {
      count_.left_out.push_back({entry.path, std::move(why)});
      return {};
    }
    const std::size_t folders = parts->size() - (entry.kind == TarEntry::Kind::Folder ? 0 : 1);
    Result<Descriptor> folder = ensure_folders(*parts, folders);
    if (!folder || entry.kind == TarEntry::Kind::Folder) {
      count_.folders += folder ? 1 : 0;
      return folder ? Result<void>() : folder.error();
    }
    return make(folder->number(), parts->back(), entry);
  }

  Result<void> content(std::string_view bytes) override {
    if (!file_.open()) {
      return {};  // of something left out
    }
    count_.bytes += static_cast<std::int64_t>(bytes.size());
    return write_all(file_.number(), bytes, "a file");
  }

  Result<void> end() override {
    file_ = Descriptor();
    return {};
  }

  const CopyCount& count() const override { return count_; }

 private:
  static std::string why_left_out(const TarEntry& entry, const std::vector<std::string>& parts) {
    switch (entry.kind) {
      case TarEntry::Kind::Pipe:
        return "a pipe";
      case TarEntry::Kind::Device:
        return "a device";
      case TarEntry::Kind::Other:
        return "neither file nor folder nor link";
      case TarEntry::Kind::File:
      case TarEntry::Kind::Folder:
      case TarEntry::Kind::HardLink:
      case TarEntry::Kind::Link:
        break;
    }
    return link_is_safe(entry, parts) ? "" : "a link that leads out";
  }

  static bool link_is_safe(const TarEntry& entry, const std::vector<std::string>& parts) {
    if (entry.kind != TarEntry::Kind::Link) {
      return true;
    }
    std::string inside;  // the path below the root: a link must not leave what is copied
    for (std::size_t i = 1; i < parts.size(); ++i) {
      inside += (i == 1 ? "" : "/") + parts[i];
    }
    return !inside.empty() && link_stays_inside(inside, entry.link_target);
  }

  Result<Descriptor> ensure_folders(const std::vector<std::string>& parts, std::size_t count) {
    Descriptor here(::openat(into_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (std::size_t i = 0; here.open() && i < count; ++i) {
      const char* name = parts[i].c_str();
      if (::mkdirat(here.number(), name, 0777) != 0 && errno != EEXIST) {
        return file_error("make the folder", parts[i], errno);
      }
      Descriptor next(
          ::openat(here.number(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next.open()) {
        return file_error("enter the folder", parts[i], errno);
      }
      here = std::move(next);
    }
    return here;
  }

  Result<void> make(int folder, const std::string& name, const TarEntry& entry) {
    if (::unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) {
      return file_error("replace", name, errno);
    }
    if (entry.kind == TarEntry::Kind::HardLink) {
      return make_further_name(folder, name, entry);
    }
    ++count_.files;
    if (entry.kind == TarEntry::Kind::Link) {
      const bool made = ::symlinkat(entry.link_target.c_str(), folder, name.c_str()) == 0;
      return made ? Result<void>() : file_error("make the link", name, errno);
    }
    file_ = Descriptor(::openat(folder, name.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                entry.mode & 0777));
    return file_.open() ? Result<void>() : file_error("write", name, errno);
  }

  // A further name of a file that came before it in the archive.
  Result<void> make_further_name(int folder, const std::string& name, const TarEntry& entry) {
    std::optional<std::vector<std::string>> parts = safe_parts(entry.link_target);
    if (!parts || parts->empty() || parts->size() > kDepthMax) {
      count_.left_out.push_back({entry.path, "a link that leads out"});
      return {};
    }
    parts->front() = root_;
    const Result<Descriptor> there = ensure_folders(*parts, parts->size() - 1);
    if (!there) {
      return there.error();
    }
    if (::linkat(there->number(), parts->back().c_str(), folder, name.c_str(), 0) != 0) {
      return file_error("make the further name", name, errno);
    }
    ++count_.files;
    return {};
  }

  Descriptor into_;
  std::string root_;
  Descriptor file_;  // of the present entry
  CopyCount count_;
};

}  // namespace

Result<CopyCount> pack_tree(const std::string& path, const std::string& root, TarWriter& writer) {
  Packer packer(writer);
  Result<void> packed = packer.pack(AT_FDCWD, path, root, 0);
  packed = packed ? writer.finish() : packed;
  return packed ? Result<CopyCount>(std::move(packer.count())) : packed.error();
}

Result<std::unique_ptr<TreeTarget>> TreeTarget::create(const std::string& into,
                                                       const std::string& root) {
  Descriptor folder(::open(into.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) {
    return file_error("open the folder", into, errno);
  }
  return std::unique_ptr<TreeTarget>(std::make_unique<Unpacker>(std::move(folder), root));
}

}  // namespace bmgpu::cli
