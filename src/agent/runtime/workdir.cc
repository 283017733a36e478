#include "agent/runtime/workdir.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "agent/runtime/files.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kPartBytesMax = 255;

// The parts of a relative path; empty if it is not one that stays where it is.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  if (path.empty() || path.size() > kWorkPathBytesMax || path.find('\0') != std::string::npos) {
    return parts;
  }
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > kPartBytesMax) {
      return {};
    }
    parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

// True if a link at `path` with that target stays within the folder, by its text alone.
bool link_stays(const std::vector<std::string>& path, const std::string& target) {
  if (target.empty() || target.front() == '/' || target.size() > kWorkPathBytesMax ||
      target.find('\0') != std::string::npos) {
    return false;
  }
  std::size_t depth = path.size() - 1;
  for (std::size_t at = 0; at <= target.size();) {
    const std::size_t end = std::min(target.find('/', at), target.size());
    const std::string part = target.substr(at, end - at);
    if (part == "..") {
      if (depth == 0) {
        return false;
      }
      --depth;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    at = end + 1;
  }
  return true;
}

Fd open_beneath(int root, const std::string& path, std::uint64_t flags, std::uint64_t mode) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

Error bad_path(const std::string& path, const char* why) {
  return {ErrorCode::InvalidArgument, "workdir: '" + path + "' " + why};
}

class Layout {
 public:
  Layout(Fd root, const WorkdirOptions& options) : root_(std::move(root)), options_(options) {}

  Result<void> add(const WorkFileEntry& file, const std::vector<std::string>& parts) {
    Result<Fd> parent = ensure_parent(parts, file.path);
    if (!parent.ok()) {
      return parent.error();
    }
    if (file.sha256_hex.empty()) {
      return add_link(file, parent->get(), parts.back());
    }
    return add_file(file, parent->get(), parts.back());
  }

 private:
  Result<Fd> ensure_parent(const std::vector<std::string>& parts, const std::string& path) {
    Fd parent(::dup(root_.get()));
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (::mkdirat(parent.get(), parts[i].c_str(), 0755) == 0) {
        own(parent.get(), parts[i]);
      } else if (errno != EEXIST) {
        return errno_error("workdir: cannot make the folder of '" + path + "'", errno);
      }
      parent = open_beneath(parent.get(), parts[i], O_RDONLY | O_DIRECTORY, 0);
      if (!parent.valid()) {
        return bad_path(path, "lies below something that is not a folder");
      }
    }
    return parent;
  }

  void own(int parent, const std::string& name) const {
    [[maybe_unused]] const int done =
        ::fchownat(parent, name.c_str(), options_.uid, options_.gid, AT_SYMLINK_NOFOLLOW);
  }

  Result<void> add_link(const WorkFileEntry& file, int parent, const std::string& name) {
    if (::symlinkat(file.link_target.c_str(), parent, name.c_str()) != 0) {
      return errno_error("workdir: cannot make the link '" + file.path + "'", errno);
    }
    own(parent, name);
    return {};
  }

  Result<void> add_file(const WorkFileEntry& file, int parent, const std::string& name) {
    const Fd blob(::open((options_.blob_dir + "/" + file.sha256_hex).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info = {};
    if (!blob.valid() || ::fstat(blob.get(), &info) != 0 || info.st_size != file.size) {
      return Error{ErrorCode::DataLoss,
                   "workdir: the contents of '" + file.path + "' are not on this node"};
    }
    const Fd out = open_beneath(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!out.valid()) {
      return errno_error("workdir: cannot make '" + file.path + "'", errno);
    }
    for (std::int64_t left = file.size; left > 0;) {
      const ssize_t n = ::sendfile(out.get(), blob.get(), nullptr, static_cast<std::size_t>(left));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        return errno_error("workdir: cannot write '" + file.path + "'", n < 0 ? errno : EIO);
      }
      left -= n;
    }
    if (::fchown(out.get(), options_.uid, options_.gid) != 0 ||
        ::fchmod(out.get(), file.mode & 0777) != 0) {
      return errno_error("workdir: '" + file.path + "'", errno);
    }
    return {};
  }

  Fd root_;
  const WorkdirOptions& options_;
};

bool is_sha256_hex(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

Result<void> lay_out_workdir(const std::vector<WorkFileEntry>& files,
                             const WorkdirOptions& options) {
  if (files.size() > kWorkFilesMax) {
    return Error{ErrorCode::ResourceExhausted, "workdir: more than 100,000 files"};
  }
  // All is checked before anything is made.
  std::set<std::string> seen;
  std::vector<std::vector<std::string>> parts;
  for (const WorkFileEntry& file : files) {
    parts.push_back(parts_of(file.path));
    if (parts.back().empty()) {
      return bad_path(file.path, "is not a relative path inside the folder");
    }
    if (!seen.insert(file.path).second) {
      return bad_path(file.path, "is there twice");
    }
    if (file.sha256_hex.empty() && !link_stays(parts.back(), file.link_target)) {
      return bad_path(file.path, "is a link that leads out of the folder");
    }
    if (!file.sha256_hex.empty() && !is_sha256_hex(file.sha256_hex)) {
      return bad_path(file.path, "has no valid hash");
    }
  }
  Fd root(::open(options.target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!root.valid()) {
    return errno_error(options.target, errno);
  }
  Layout layout(std::move(root), options);
  // Links last: no file's path can then lead through one.
  for (const bool links : {false, true}) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].sha256_hex.empty() == links) {
        if (Result<void> added = layout.add(files[i], parts[i]); !added.ok()) {
          return added;
        }
      }
    }
  }
  return {};
}

}  // namespace bmgpu::agent
