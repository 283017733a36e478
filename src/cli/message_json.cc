#include "cli/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cctype>

#include "wire/hash.h"

namespace bmgpu::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// END_REASON_JOB_EXITED of EndReason → "job-exited"; …_UNSPECIFIED → null.
Json word_of(const EnumValueDescriptor* value) {
  if (value->number() == 0) {
    return {};
  }
  std::string prefix;
  for (const char c : value->type()->name()) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    prefix += upper && !prefix.empty() ? "_" : "";
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return enum_word(value->name(), prefix + "_");
}

// One value: the field itself, or element `index` of a repeated one.
Json value_of(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool element = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return element ? reflection.GetRepeatedBool(message, field, index)
                     : reflection.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return element ? reflection.GetRepeatedInt32(message, field, index)
                     : reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return element ? reflection.GetRepeatedUInt32(message, field, index)
                     : reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return element ? reflection.GetRepeatedInt64(message, field, index)
                     : reflection.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return element ? reflection.GetRepeatedUInt64(message, field, index)
                     : reflection.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return word_of(element ? reflection.GetRepeatedEnum(message, field, index)
                             : reflection.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return to_json(element ? reflection.GetRepeatedMessage(message, field, index)
                             : reflection.GetMessage(message, field));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = element ? reflection.GetRepeatedString(message, field, index)
                                       : reflection.GetString(message, field);
      return field->type() == FieldDescriptor::TYPE_BYTES ? wire::hex(text) : text;
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      break;
  }
  check(false, "the wire schema has no floating point");
  return {};
}

Json map_of(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor* key = field->message_type()->map_key();
  const FieldDescriptor* value = field->message_type()->map_value();
  Json object = Json::object();
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, field, i);
    check(key->cpp_type() == FieldDescriptor::CPPTYPE_STRING, "json: a map key is not a string");
    object.set(entry.GetReflection()->GetString(entry, key), value_of(entry, value, -1));
  }
  return object;
}

}  // namespace

std::string enum_word(std::string_view name, std::string_view prefix) {
  if (name.starts_with(prefix)) {
    name.remove_prefix(prefix.size());
  }
  std::string word;
  for (const char c : name) {
    word += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

Json to_json(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_map()) {
      object.set(field->name(), map_of(message, field));
    } else if (field->is_repeated()) {
      Json elements = Json::array();
      for (int index = 0; index < reflection.FieldSize(message, field); ++index) {
        elements.push(value_of(message, field, index));
      }
      object.set(field->name(), std::move(elements));
    } else if (field->has_presence() && !reflection.HasField(message, field)) {
      object.set(field->name(), Json());
    } else {
      object.set(field->name(), value_of(message, field, -1));
    }
  }
  return object;
}

}  // namespace bmgpu::cli
