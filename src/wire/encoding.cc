#include "wire/encoding.h"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/json_util.h>

#include <limits>
#include <vector>

#include "wire/json.h"

namespace bmgpu::wire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// protobuf prints a line on standard error for each string that is not UTF-8: a peer could fill a
// log with it. The failure itself is returned.
void silence_protobuf_log() {
  static const bool silenced = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(silenced);
}

// Name of the message that holds a field unknown to this build, with the field's number; empty if
// there is none.
std::string find_unknown_field(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return std::string(message.GetDescriptor()->full_name()) + " field " +
           std::to_string(unknown.field(0).number());
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    if (!field->is_repeated()) {
      std::string found = find_unknown_field(reflection.GetMessage(message, field));
      if (!found.empty()) {
        return found;
      }
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      std::string found = find_unknown_field(reflection.GetRepeatedMessage(message, field, i));
      if (!found.empty()) {
        return found;
      }
    }
  }
  return {};
}

bool parse_binary(std::string_view bytes, Message& message) {
  silence_protobuf_log();
  return bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()) &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::string type_name(const Message& message) {
  return std::string(message.GetDescriptor()->full_name());
}

Result<void> decode_proto(std::string_view bytes, Message& message) {
  if (!parse_binary(bytes, message)) {
    return Error{ErrorCode::InvalidArgument,
                 "the body is not a binary " + type_name(message) +
                     ": it is cut off, has stray bytes, or a text in it is not UTF-8"};
  }
  const std::string unknown = find_unknown_field(message);
  if (!unknown.empty()) {
    return Error{ErrorCode::InvalidArgument, "unknown field in the body: " + unknown +
                                                 "; is the client newer than the server?"};
  }
  return {};
}

Result<void> decode_json(std::string_view bytes, Message& message) {
  if (!is_utf8(bytes)) {
    return Error{ErrorCode::InvalidArgument, "the body is not UTF-8 text"};
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status =
      google::protobuf::util::JsonStringToMessage({bytes.data(), bytes.size()}, &message, options);
  if (!status.ok()) {
    constexpr std::size_t kDetailMax = 300;
    std::string detail(status.message().data(), status.message().size());
    if (detail.size() > kDetailMax) {
      detail.resize(kDetailMax);
      detail += " …";
    }
    return Error{ErrorCode::InvalidArgument,
                 "the body is not a JSON " + type_name(message) + ": " + detail};
  }
  return {};
}

}  // namespace

Result<void> decode(Encoding encoding, std::string_view bytes, Message& message) {
  return encoding == Encoding::Proto ? decode_proto(bytes, message) : decode_json(bytes, message);
}

Result<void> decode_answer(std::string_view bytes, Message& message) {
  if (!parse_binary(bytes, message)) {
    return Error{ErrorCode::DataLoss, "the peer sent bytes that are no " + type_name(message)};
  }
  return {};
}

std::string encode(Encoding encoding, const Message& message) {
  std::string bytes;
  if (encoding == Encoding::Proto) {
    check(message.SerializeToString(&bytes), "encode: a message does not serialise");
    return bytes;
  }
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  const auto status = google::protobuf::util::MessageToJsonString(message, &bytes, options);
  check(status.ok(), "encode: a message does not print as JSON");
  return bytes;
}

}  // namespace bmgpu::wire
