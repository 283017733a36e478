// Local files and folders as tar archives, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/file.h"
#include "cli/tar.h"

namespace bmgpu::cli {

struct CopyCount {
  std::size_t files = 0;  // links included
  std::size_t folders = 0;
  std::int64_t bytes = 0;
  std::vector<LeftOut> left_out;  // devices, pipes, sockets, links that lead out
};

// Packs the file or folder at `path` under the name `root`. Links within are packed as links.
Result<CopyCount> pack_tree(const std::string& path, const std::string& root, TarWriter& writer);

// Unpacks below the folder `into`; the archive's own root is called `root` there. Nothing is ever
// written elsewhere, whatever the archive says: its paths and links are not trusted.
class TreeTarget : public TarTarget {
 public:
  static Result<std::unique_ptr<TreeTarget>> create(const std::string& into,
                                                    const std::string& root);
  virtual const CopyCount& count() const = 0;
};

}  // namespace bmgpu::cli
