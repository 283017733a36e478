#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/copy_tree.h"
#include "cli/exec_socket.h"
#include "cli/file.h"
#include "cli/format.h"
#include "cli/text.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

namespace fs = std::filesystem;

Error mistake(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

// "order-7:/workspace/out" → {order-7, /workspace/out}. A local path with a colon in it is written
// with a slash before the colon: ./a:b.
struct Place {
  std::string id;  // empty: on this machine
  std::string path;
};
Place place_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) {
    return {"", text};
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
}

// The folder and the name that a copy gets in it. "out/" or an existing folder: into it, under the
// source's own name; anything else is the copy's own path.
struct Landing {
  std::string folder;
  std::string name;
};

std::string own_name(const std::string& path) {
  std::string plain = fs::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/')) {
    plain.pop_back();
  }
  return fs::path(plain).filename().string();
}

Result<Landing> landing(const std::string& target, const std::string& source_name,
                        bool into_folder) {
  if (source_name.empty() || source_name == "." || source_name == ".." || source_name == "/") {
    return mistake("the source needs a name of its own: name a file or folder");
  }
  if (into_folder) {
    return Landing{
        target.size() > 1 && target.ends_with('/') ? target.substr(0, target.size() - 1) : target,
        source_name};
  }
  const fs::path path(target);
  const std::string parent = path.parent_path().string();
  return Landing{parent.empty() ? "." : parent, path.filename().string()};
}

v1::ExecStart archive_start(const std::string& id, v1::ArchiveDirection way,
                            const std::string& path) {
  v1::ExecStart start;
  start.set_id(id);
  start.set_archive(way);
  start.set_archive_path(path);
  return start;
}

Answer copied(Context& context, const CopyCount& count, const std::string& to) {
  Json left_out = Json::array();
  for (const LeftOut& item : count.left_out) {
    context.note("left out: " + printable(item.path) + " (" + printable(item.why) + ")");
    left_out.push(Json::object().set("path", item.path).set("why", item.why));
  }
  Json document = Json::object();
  document.set("files", count.files).set("bytes", count.bytes);
  document.set("left_out", std::move(left_out));
  return {"copied " + files_text(count.files) + ", " + wire::print_size_short(count.bytes) +
              ", to " + printable(to) + "\n",
          std::move(document)};
}

Answer upload(Context& context, const std::string& from, const Place& to) {
  std::error_code failed;
  const fs::path real = fs::canonical(from, failed);
  struct stat facts {};
  if (failed || ::stat(real.c_str(), &facts) != 0) {
    return file_error("read", from, failed ? failed.value() : errno);
  }
  if (const std::string special = special_file(facts.st_mode); !special.empty()) {
    return mistake(from + " is " + special + "; only files and folders can be copied");
  }
  const Result<Landing> there = landing(to.path, real.filename().string(), to.path.ends_with('/'));
  if (!there) {
    return there.error();
  }
  Result<std::unique_ptr<ExecSocket>> socket =
      ExecSocket::open(context, archive_start(to.id, v1::ARCHIVE_DIRECTION_UPLOAD, there->folder));
  if (!socket) {
    return socket.error();
  }
  TarWriter writer([&](std::string_view bytes) { return (*socket)->send_stdin(bytes); });
  const Result<CopyCount> packed = pack_tree(from, there->name, writer);
  const bool ended_early = !packed && packed.error().code == ErrorCode::Refused;
  if (!packed && !ended_early) {
    return packed.error();
  }
  (*socket)->close_stdin();
  while (true) {
    const ExecItem item = (*socket)->next();
    if (const auto* refused = std::get_if<ExecFailed>(&item)) {
      return failure_of(*refused);
    }
    if (const auto* exit = std::get_if<ExecExit>(&item)) {
      if (ended_early || exit->code != 0) {
        return Answer(ended_early
                          ? packed.error()
                          : Error{ErrorCode::Refused, "the job's side could not unpack it"});
      }
      return copied(context, *packed, to.id + ":" + to.path);
    }
  }
}

// An archive without anything is how the container engine copies sockets and some devices.
Answer downloaded(Context& context, const Place& from, const CopyCount& count,
                  const std::string& to) {
  if (count.files > 0 || count.folders > 0) {
    return copied(context, count, to);
  }
  const std::string what = count.left_out.empty() ? "a socket or a device" : count.left_out[0].why;
  return Error{ErrorCode::Refused, from.id + ":" + from.path + " is " + what +
                                       "; only files and folders can be copied"};
}

Answer download(Context& context, const Place& from, const std::string& to) {
  std::error_code ignored;
  const bool into_folder = to.ends_with('/') || fs::is_directory(to, ignored);
  const Result<Landing> here = landing(to, own_name(from.path), into_folder);
  if (!here) {
    return here.error();
  }
  Result<std::unique_ptr<TreeTarget>> target = TreeTarget::create(here->folder, here->name);
  if (!target) {
    return target.error();
  }
  Result<std::unique_ptr<ExecSocket>> socket =
      ExecSocket::open(context, archive_start(from.id, v1::ARCHIVE_DIRECTION_DOWNLOAD, from.path));
  if (!socket) {
    return socket.error();
  }
  (*socket)->close_stdin();
  TarReader reader(**target);
  while (true) {
    const ExecItem item = (*socket)->next();
    if (const auto* output = std::get_if<ExecOutput>(&item)) {
      if (output->stream == ExecOutput::Stream::Stderr) {
        context.note(printable(output->bytes));
      } else if (Result<void> taken = reader.take(output->bytes); !taken) {
        return taken.error();
      }
    } else if (const auto* failed = std::get_if<ExecFailed>(&item)) {
      return failure_of(*failed);
    } else {
      const Result<void> whole = reader.finish();
      return whole ? downloaded(context, from, (*target)->count(), to) : Answer(whole.error());
    }
  }
}

Answer run_cp(Context& context, const Arguments& arguments) {
  const Place from = place_of(arguments.operand(0));
  const Place to = place_of(arguments.operand(1));
  if (from.id.empty() == to.id.empty()) {
    return usage_failure("one of FROM and TO is in a job, as ID:PATH; the other is local");
  }
  const std::string& inside = from.id.empty() ? to.path : from.path;
  if (!inside.starts_with('/')) {
    return usage_failure("the path in the job must begin with /, as in order-7:/workspace/out");
  }
  return from.id.empty() ? upload(context, from.path, to) : download(context, from, to.path);
}

}  // namespace

CommandSpec cp_command() {
  return {
      .name = "cp",
      .summary = "Copy files and folders into a running job or out of it",
      .description =
          "TO with a final slash, and an existing local folder, get the copy under its own name;\n"
          "any other TO is the copy's name. A folder in the job is never replaced by a file.\n"
          "Links are copied as links; those that lead out of what is copied, pipes, sockets and\n"
          "devices are left out and named.",
      .operands =
          {{.name = "FROM", .help = "PATH, or ID:PATH in a job", .completes = Completes::File},
           {.name = "TO", .help = "ID:PATH in a job, or PATH", .completes = Completes::File}},
      .examples = {{"bmcli cp order-7:/workspace/best.ckpt .", "A file out of the job"},
                   {"bmcli cp data/ order-7:/workspace/", "A folder into it"}},
      .run = run_cp};
}

}  // namespace bmgpu::cli
