#include "agent/runtime/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr unsigned kLoopMajor = 7;
constexpr int kLoopTries = 64;  // somebody else may take the free one that we were told of
constexpr std::chrono::seconds kReleaseDeadline{10};
constexpr int kReleasePauseMs = 10;

struct Loop {
  Fd fd;
  std::string path;
};

Result<Loop> attach_loop(const std::string& image) {
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  const Fd file(::open(image.c_str(), O_RDWR | O_CLOEXEC));
  if (!control.valid() || !file.valid()) {
    return errno_error(control.valid() ? image : "/dev/loop-control", errno);
  }
  for (int attempt = 0; attempt < kLoopTries; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) {
      return errno_error("no free loop device", errno);
    }
    Loop loop{Fd(), "/dev/loop" + std::to_string(number)};
    loop.fd = Fd(::open(loop.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop.fd.valid() && errno == ENOENT) {
      // A /dev that is not a devtmpfs does not learn of new devices by itself.
      ::mknod(loop.path.c_str(), S_IFBLK | 0660,
              makedev(kLoopMajor, static_cast<unsigned>(number)));
      loop.fd = Fd(::open(loop.path.c_str(), O_RDWR | O_CLOEXEC));
    }
    if (!loop.fd.valid()) {
      return errno_error(loop.path, errno);
    }
    loop_config config = {};
    config.fd = static_cast<__u32>(file.get());
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(loop.fd.get(), LOOP_CONFIGURE, &config) == 0) {
      return loop;
    }
    if (errno != EBUSY) {
      return errno_error("cannot attach " + image + " to " + loop.path, errno);
    }
  }
  return Error{ErrorCode::ResourceExhausted, "no free loop device after 64 tries"};
}

std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(dir.c_str()), ::closedir);
  while (handle != nullptr) {
    const dirent* entry = ::readdir(handle.get());
    if (entry == nullptr) {
      break;
    }
    if (entry->d_name[0] != '.') {
      out.emplace_back(entry->d_name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<void> make_template(const std::string& dir) {
  if (Result<void> made = make_dirs(dir, 0755); !made.ok()) {
    return made;
  }
  for (const char* folder : kScratchFolders) {
    const std::string path = dir + "/" + folder;
    if (Result<void> made = make_dirs(path); !made.ok()) {
      return made;
    }
    if (::chmod(path.c_str(), 01777) != 0) {
      return errno_error(path, errno);
    }
  }
  return {};
}

// "loop3" if `image` is attached to it; removed files keep their name there, with a mark.
std::string loop_of(const std::string& image) {
  std::error_code ignored;
  const std::string path = std::filesystem::weakly_canonical(image, ignored).string();
  for (const std::string& name : names_in("/sys/block")) {
    const Result<std::string> file = read_file("/sys/block/" + name + "/loop/backing_file");
    if (file.ok() && (*file == path + "\n" || *file == path + " (deleted)\n")) {
      return name;
    }
  }
  return "";
}

// Which thread lives in a mount namespace with a mount of that block device.
std::string holder_of(const std::string& loop) {
  const Result<std::string> number = read_file("/sys/block/" + loop + "/dev");
  if (!number.ok()) {
    return "";
  }
  const std::string device = " " + number->substr(0, number->find('\n')) + " ";
  for (const std::string& process : names_in("/proc")) {
    for (const std::string& thread : names_in("/proc/" + process + "/task")) {
      const std::string of = "/proc/" + process + "/task/" + thread;
      const Result<std::string> mounts = read_file(of + "/mountinfo");
      if (mounts.ok() && mounts->find(device) != std::string::npos) {
        const Result<std::string> name = read_file(of + "/comm");
        return (name.ok() ? name->substr(0, name->find('\n')) + ", " : "") + "process " + process;
      }
    }
  }
  return "";
}

bool ready_image(const std::string& name) { return name.ends_with(".img"); }

}  // namespace

Result<void> format_scratch(const std::string& image, std::int64_t size_mib) {
  if (size_mib < kScratchMibMin) {
    return Error{ErrorCode::InvalidArgument,
                 "scratch space is at least " + std::to_string(kScratchMibMin) + " MiB"};
  }
  const Fd fd(::open(image.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid() || ::ftruncate(fd.get(), size_mib * 1024 * 1024) != 0) {
    return errno_error(image, errno);
  }
  const std::string folders = image + ".folders";
  if (Result<void> made = make_template(folders); !made.ok()) {
    (void)remove_tree(folders).ok();
    ::unlink(image.c_str());
    return made;
  }
  RunOptions options;
  options.deadline = std::chrono::seconds(60);
  Result<std::string> done = run_ok({"mkfs.ext4", "-d", folders, "-q", "-F", "-m", "0", "-E",
                                     "lazy_itable_init=1,nodiscard", "-O", "^has_journal", image},
                                    options);
  const Result<void> cleared = remove_tree(folders);
  if (!done.ok()) {
    ::unlink(image.c_str());
    return done.error();
  }
  return cleared;
}

Result<void> mount_scratch(const std::string& image, const std::string& target) {
  if (Result<void> made = make_dirs(target); !made.ok()) {
    return made;
  }
  Result<Loop> loop = attach_loop(image);
  if (!loop.ok()) {
    return loop.error();
  }
  if (::mount(loop->path.c_str(), target.c_str(), "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
              nullptr) != 0) {
    return errno_error("cannot mount the scratch file system on " + target, errno);
  }
  return {};
}

Result<void> scratch_released(const std::string& image) {
  const std::string loop = loop_of(image);
  if (loop.empty()) {
    return {};
  }
  const std::string holder = holder_of(loop);
  return Error{ErrorCode::Unavailable,
               "/dev/" + loop + " still holds " + image +
                   (holder.empty() ? "" : ": it is mounted where " + holder + " runs")};
}

Result<void> remove_scratch(const std::string& image, const std::string& target) {
  while (::umount2(target.c_str(), UMOUNT_NOFOLLOW) == 0) {
  }
  if (errno == EBUSY && ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
    return errno_error("cannot unmount " + target, errno);
  }
  if (::unlink(image.c_str()) != 0 && errno != ENOENT) {
    return errno_error("cannot remove " + image, errno);
  }
  if (Result<void> removed = remove_tree(target); !removed.ok()) {
    return removed;
  }
  const auto end = std::chrono::steady_clock::now() + kReleaseDeadline;
  while (!loop_of(image).empty() && std::chrono::steady_clock::now() < end) {
    ::poll(nullptr, 0, kReleasePauseMs);
  }
  return scratch_released(image);
}

Result<void> take_scratch(const std::string& pool, std::int64_t size_mib,
                          const std::string& image) {
  const std::string dir = pool + "/" + std::to_string(size_mib);
  for (const std::string& name : names_in(dir)) {
    if (ready_image(name) && ::rename((dir + "/" + name).c_str(), image.c_str()) == 0) {
      return {};
    }
  }
  return Error{ErrorCode::NotFound, "no scratch file of that size is ready"};
}

Result<void> refill_scratch_pool(const std::string& pool,
                                 const std::vector<std::int64_t>& sizes_mib, int count) {
  static std::atomic<unsigned> serial{0};
  for (const std::string& name : names_in(pool)) {
    const bool wanted = std::any_of(sizes_mib.begin(), sizes_mib.end(), [&](std::int64_t size) {
      return std::to_string(size) == name;
    });
    if (!wanted) {
      if (Result<void> removed = remove_tree(pool + "/" + name); !removed.ok()) {
        return removed;
      }
    }
  }
  for (const std::int64_t size : sizes_mib) {
    const std::string dir = pool + "/" + std::to_string(size);
    if (Result<void> made = make_dirs(dir); !made.ok()) {
      return made;
    }
    int ready = 0;
    for (const std::string& name : names_in(dir)) {
      if (ready_image(name)) {
        ++ready;
      } else {
        (void)remove_tree(dir + "/" + name).ok();  // half made, by an agent that is gone
      }
    }
    for (; ready < count; ++ready) {
      const std::string name =
          dir + "/" + std::to_string(::getpid()) + "-" + std::to_string(++serial);
      if (Result<void> made = format_scratch(name + ".new", size); !made.ok()) {
        return made;
      }
      if (::rename((name + ".new").c_str(), (name + ".img").c_str()) != 0) {
        return errno_error("cannot keep " + name, errno);
      }
    }
  }
  return {};
}

}  // namespace bmgpu::agent
