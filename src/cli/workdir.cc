#include "cli/workdir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/file.h"
#include "cli/ignore.h"
#include "cli/text.h"
#include "wire/json.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kIgnoreBytesMax = 1024 * 1024;

Error refused(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Walks by descriptors (openat, O_NOFOLLOW), so that a folder swapped for a link while we read
// cannot lead us out.
class Walk {
 public:
  Walk(const WorkdirLimits& limits, const std::function<void(std::int64_t)>& on_bytes)
      : limits_(limits), on_bytes_(on_bytes) {}

  Result<Workdir> run(const std::string& folder) {
    found_.folder = folder;
    Descriptor root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root.open()) {
      return file_error("open the folder", folder, errno);
    }
    Result<void> walked = enter(std::move(root), "", 0);
    if (!walked) {
      return walked.error();
    }
    std::ranges::sort(found_.files, {}, &WorkdirFile::path);
    return std::move(found_);
  }

 private:
  Result<void> enter(Descriptor folder, const std::string& path, std::size_t depth) {
    if (depth > limits_.depth_max) {
      return refused("the folder is nested more than " + std::to_string(limits_.depth_max) +
                     " deep at " + printable(path));
    }
    Result<std::vector<IgnorePattern>> patterns = read_patterns(folder.number(), path);
    if (!patterns) {
      return patterns.error();
    }
    Result<std::vector<std::string>> names = read_folder(folder.number(), path);
    if (!names) {
      return names.error();
    }
    ignore_.push(path, std::move(*patterns));
    Result<void> outcome;
    for (std::size_t i = 0; outcome && i < names->size(); ++i) {
      outcome = visit(folder.number(), path, (*names)[i], depth);
    }
    ignore_.pop();
    return outcome;
  }

  Result<std::vector<IgnorePattern>> read_patterns(int folder, const std::string& path) {
    std::vector<IgnorePattern> patterns;
    for (const char* name : {".gitignore", ".bmignore"}) {
      const Descriptor file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      struct stat facts {};
      const bool regular =
          file.open() && ::fstat(file.number(), &facts) == 0 && S_ISREG(facts.st_mode);
      if (!regular) {
        continue;
      }
      Result<std::string> text = read_all(file.number(), kIgnoreBytesMax, path + "/" + name);
      if (!text) {
        return text.error();
      }
      std::vector<IgnorePattern> more = parse_ignore(*text);
      std::ranges::move(more, std::back_inserter(patterns));
    }
    return patterns;
  }

  Result<void> visit(int folder, const std::string& parent, const std::string& name,
                     std::size_t depth) {
    if (name == ".git") {
      return {};
    }
    const std::string path = parent.empty() ? name : parent + "/" + name;
    struct stat facts {};
    if (::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      return file_error("read", path, errno);
    }
    const bool is_folder = S_ISDIR(facts.st_mode);
    if (ignore_.ignores(path, is_folder ? IgnoreStack::Kind::Folder : IgnoreStack::Kind::File)) {
      return {};
    }
    if (is_folder) {
      Descriptor below(
          ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!below.open()) {
        return file_error("open the folder", path, errno);
      }
      return enter(std::move(below), path, depth + 1);
    }
    if (std::string special = special_file(facts.st_mode); !special.empty()) {
      found_.left_out.push_back({path, std::move(special)});
      return {};
    }
    if (Result<void> room = check_room(path); !room) {
      return room;
    }
    return S_ISLNK(facts.st_mode) ? add_link(folder, name, path) : add_file(folder, name, path);
  }

  Result<void> check_room(const std::string& path) const {
    if (!wire::is_utf8(path)) {
      return refused("the name " + printable(path) + " is not valid UTF-8: rename it");
    }
    if (std::ranges::any_of(path, is_control)) {
      return refused("the name " + printable(path) +
                     " holds a control character: rename it, or leave it out with a .bmignore "
                     "file (? stands for any character)");
    }
    if (path.size() > limits_.path_bytes_max) {
      return refused("the path " + printable(path.substr(0, 80)) + "… is longer than " +
                     std::to_string(limits_.path_bytes_max) + " bytes");
    }
    if (found_.files.size() == limits_.files_max) {
      return refused("the folder holds more than " + std::to_string(limits_.files_max) +
                     " files; leave some out with a .bmignore file");
    }
    return {};
  }

  Result<void> add_link(int folder, const std::string& name, const std::string& path) {
    std::string target(limits_.path_bytes_max + 1, '\0');
    const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
    if (size < 0) {
      return file_error("read the link", path, errno);
    }
    target.resize(static_cast<std::size_t>(size));
    if (target.size() > limits_.path_bytes_max || !wire::is_utf8(target) ||
        !link_stays_inside(path, target)) {
      return refused("the link " + printable(path) + " leads out of the folder, to " +
                     printable(target) + "; leave it out with a line in .bmignore: /" +
                     printable(path));
    }
    found_.files.push_back({.path = path, .link_target = std::move(target)});
    return {};
  }

  Result<void> add_file(int folder, const std::string& name, const std::string& path) {
    const Descriptor file(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file.open() || ::fstat(file.number(), &facts) != 0) {
      return file_error("open", path, errno);
    }
    if (!S_ISREG(facts.st_mode)) {
      return refused(printable(path) + " changed while it was read; try again");
    }
    WorkdirFile entry{.path = path, .mode = facts.st_mode & 0777};
    wire::Sha256 hash;
    std::array<char, 1 << 16> buffer;
    while (true) {
      const ssize_t got = ::read(file.number(), buffer.data(), buffer.size());
      if (got < 0 && errno != EINTR) {
        return file_error("read", path, errno);
      }
      if (got == 0) {
        break;
      }
      const std::int64_t bytes = std::max<ssize_t>(got, 0);
      hash.add(std::string_view(buffer.data(), static_cast<std::size_t>(bytes)));
      entry.size += bytes;
      found_.bytes += bytes;
      if (found_.bytes > limits_.bytes_max) {
        return refused("the folder holds more than " + wire::print_size(limits_.bytes_max) +
                       "; leave some out with a .bmignore file (reached at " + printable(path) +
                       ")");
      }
      on_bytes_(bytes);
    }
    entry.sha256 = hash.finish();
    found_.files.push_back(std::move(entry));
    return {};
  }

  const WorkdirLimits& limits_;
  const std::function<void(std::int64_t)>& on_bytes_;
  IgnoreStack ignore_;
  Workdir found_;
};

}  // namespace

bool link_stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/') {
    return false;
  }
  auto depth = std::ranges::count(path, '/');  // of the folder that holds the link
  while (!target.empty()) {
    const std::size_t end = std::min(target.find('/'), target.size());
    const std::string_view step = target.substr(0, end);
    target.remove_prefix(std::min(end + 1, target.size()));
    depth += step.empty() || step == "." ? 0 : step == ".." ? -1 : 1;
    if (depth < 0) {
      return false;
    }
  }
  return true;
}

Result<Workdir> scan_workdir(const std::string& folder, const WorkdirLimits& limits,
                             const std::function<void(std::int64_t bytes)>& on_bytes) {
  return Walk(limits, on_bytes).run(folder);
}

}  // namespace bmgpu::cli
