#include "cli/upload.h"

#include <map>

#include "bmgpu/v1/market.pb.h"
#include "cli/context.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

// Progress on a terminal, silence elsewhere: a script's log needs no hundred lines of it.
class Progress {
 public:
  explicit Progress(Context& context)
      : line_(context.environment().err, StatusLine::Mode::Rewrite),
        visible_(context.environment().err_terminal) {}
  void show(const std::string& text) {
    if (visible_) {
      line_.show(text);
    }
  }

 private:
  StatusLine line_;
  bool visible_;
};

// Each content once, whatever number of files has it.
std::map<std::string, const WorkdirFile*> contents_of(const Workdir& workdir) {
  std::map<std::string, const WorkdirFile*> contents;
  for (const WorkdirFile& file : workdir.files) {
    if (file.link_target.empty()) {
      contents.emplace(wire::as_bytes(file.sha256), &file);
    }
  }
  return contents;
}

Error changed(const WorkdirFile& file, const Error& error) {
  if (error.code == ErrorCode::DataLoss || error.code == ErrorCode::InvalidArgument) {
    return {ErrorCode::Refused, printable(file.path) + " could not be uploaded: " + error.message +
                                    " (did it change meanwhile? try again)"};
  }
  return error;
}

}  // namespace

Result<Workdir> scan_with_progress(Context& context, const std::string& folder) {
  std::int64_t bytes = 0;
  Progress progress(context);
  Result<Workdir> workdir = scan_workdir(folder, WorkdirLimits(), [&](std::int64_t more) {
    bytes += more;
    progress.show("reading " + folder + ": " + wire::print_size_short(bytes));
  });
  progress.show("");
  if (workdir) {
    for (const LeftOut& left_out : workdir->left_out) {
      context.note("left out: " + printable(left_out.path) + " (" + left_out.why + ")");
    }
  }
  return workdir;
}

Result<Uploaded> upload(Context& context, const Workdir& workdir) {
  const std::map<std::string, const WorkdirFile*> contents = contents_of(workdir);
  v1::MissingBlobsRequest request;
  for (const auto& [sha256, file] : contents) {
    request.add_sha256(sha256);
  }
  v1::MissingBlobsResponse missing;
  if (Result<void> called = context.call("MissingBlobs", request, missing); !called) {
    return called.error();
  }
  std::int64_t total = 0;
  for (const std::string& sha256 : missing.sha256()) {
    const auto found = contents.find(sha256);
    if (found == contents.end()) {
      return Error{ErrorCode::Internal, "the market misses contents that were never named"};
    }
    total += found->second->size;
  }
  Result<wire::Client*> client = context.client();
  if (!client) {
    return client.error();
  }
  Uploaded uploaded;
  Progress progress(context);
  for (const std::string& sha256 : missing.sha256()) {
    const WorkdirFile& file = *contents.at(sha256);
    const auto on_progress = [&](std::size_t sent) {
      progress.show(
          progress_bar("uploading", uploaded.bytes + static_cast<std::int64_t>(sent), total));
    };
    Result<void> put = (*client)->put_file("/blobs/" + wire::hex(sha256),
                                           workdir.folder + "/" + file.path, on_progress);
    if (!put) {
      return changed(file, put.error());
    }
    ++uploaded.files;
    uploaded.bytes += file.size;
  }
  return uploaded;
}

void fill(const Workdir& workdir, v1::JobSpec& job) {
  job.set_has_workdir(true);
  for (const WorkdirFile& file : workdir.files) {
    v1::WorkFile& entry = *job.add_workdir();
    entry.set_path(file.path);
    entry.set_link_target(file.link_target);
    if (file.link_target.empty()) {
      entry.set_sha256(std::string(wire::as_bytes(file.sha256)));
      entry.set_size(file.size);
      entry.set_mode(file.mode);
    }
  }
}

}  // namespace bmgpu::cli
