#include "agent/runtime/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "agent/runtime/files.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr unsigned kLoopMajor = 7;
constexpr int kLoopTries = 64;  // somebody else may take the free one that we were told of

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

Result<void> remove_scratch(const std::string& image, const std::string& target) {
  while (::umount2(target.c_str(), UMOUNT_NOFOLLOW) == 0) {
  }
  if (errno == EBUSY && ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
    return errno_error("cannot unmount " + target, errno);
  }
  if (::unlink(image.c_str()) != 0 && errno != ENOENT) {
    return errno_error("cannot remove " + image, errno);
  }
  return remove_tree(target);
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
