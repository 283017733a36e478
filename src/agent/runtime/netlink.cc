#include "agent/runtime/netlink.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bmgpu::agent {
namespace {

// Builds one request; attributes are aligned to four bytes and may nest.
class Message {
 public:
  Message(std::uint16_t type, int flags) {
    nlmsghdr head = {};
    head.nlmsg_type = type;
    head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    head.nlmsg_seq = 1;
    add(head);
  }
  template <typename Body>
  void add(const Body& body) {
    bytes_.append(reinterpret_cast<const char*>(&body), sizeof body);
    pad();
  }
  void attribute(std::uint16_t type, std::string_view value) {
    const std::size_t at = begin(type);
    bytes_ += value;
    end(at);
  }
  void number(std::uint16_t type, std::uint32_t value) {
    attribute(type, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }
  void name(std::uint16_t type, const std::string& text) {
    attribute(type, std::string_view(text.c_str(), text.size() + 1));
  }
  std::size_t begin(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    rtattr head = {};
    head.rta_type = type;
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
    return at;
  }
  void end(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &length, sizeof length);
    pad();
  }
  std::string finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  void pad() { bytes_.resize((bytes_.size() + 3) / 4 * 4); }
  std::string bytes_;
};

}  // namespace

Result<Netlink> Netlink::open() {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const timeval limit = {5, 0};
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
    return errno_error("netlink", errno);
  }
  return Netlink(std::move(fd));
}

// The answer's messages before its acknowledgement.
Result<std::string> Netlink::exchange(const std::string& request, const char* what) {
  if (::send(fd_.get(), request.data(), request.size(), 0) < 0) {
    return errno_error(what, errno);
  }
  std::string answer;
  alignas(nlmsghdr) std::array<char, 16384> bytes;
  while (true) {
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) {
      return errno_error(what, errno == EAGAIN ? ETIMEDOUT : errno);
    }
    auto left = static_cast<unsigned>(got);
    for (auto* head = reinterpret_cast<nlmsghdr*>(bytes.data()); NLMSG_OK(head, left);
         head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR) {
        answer.append(reinterpret_cast<const char*>(head), head->nlmsg_len);
        continue;
      }
      const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(head))->error;
      return error == 0 ? Result<std::string>(std::move(answer)) : errno_error(what, error);
    }
  }
}

Result<void> Netlink::add_veth(const std::string& name, const std::string& peer_name,
                               int peer_namespace) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.add(ifinfomsg{});
  message.name(IFLA_IFNAME, name);
  const std::size_t info = message.begin(IFLA_LINKINFO);
  message.attribute(IFLA_INFO_KIND, "veth");
  const std::size_t data = message.begin(IFLA_INFO_DATA);
  const std::size_t peer = message.begin(VETH_INFO_PEER);
  message.add(ifinfomsg{});
  message.name(IFLA_IFNAME, peer_name);
  message.number(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_namespace));
  message.end(peer);
  message.end(data);
  message.end(info);
  const Result<std::string> done = exchange(message.finish(), "cannot make a veth link");
  return done.ok() ? Result<void>() : done.error();
}

Result<int> Netlink::index_of(const std::string& name) {
  Message message(RTM_GETLINK, 0);
  message.add(ifinfomsg{});
  message.name(IFLA_IFNAME, name);
  const Result<std::string> answer = exchange(message.finish(), "cannot find the network link");
  if (!answer.ok()) {
    return answer.error();
  }
  ifinfomsg link = {};
  if (answer->size() < NLMSG_HDRLEN + sizeof link) {
    return Error{ErrorCode::Internal, "the kernel described no network link"};
  }
  std::memcpy(&link, answer->data() + NLMSG_HDRLEN, sizeof link);
  return link.ifi_index;
}

Result<void> Netlink::add_address(int index, std::uint32_t ipv4, int prefix_bits) {
  Message message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  ifaddrmsg body = {};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = static_cast<std::uint8_t>(prefix_bits);
  body.ifa_index = static_cast<std::uint32_t>(index);
  message.add(body);
  message.number(IFA_LOCAL, htonl(ipv4));
  message.number(IFA_ADDRESS, htonl(ipv4));
  const Result<std::string> done = exchange(message.finish(), "cannot set an address");
  return done.ok() ? Result<void>() : done.error();
}

Result<void> Netlink::set_up(int index) {
  Message message(RTM_NEWLINK, 0);
  ifinfomsg body = {};
  body.ifi_index = index;
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  message.add(body);
  const Result<std::string> done = exchange(message.finish(), "cannot set a link up");
  return done.ok() ? Result<void>() : done.error();
}

Result<void> Netlink::add_default_route(int index, std::uint32_t gateway_ipv4) {
  Message message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  rtmsg body = {};
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_BOOT;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  message.add(body);
  message.number(RTA_GATEWAY, htonl(gateway_ipv4));
  message.number(RTA_OIF, static_cast<std::uint32_t>(index));
  const Result<std::string> done = exchange(message.finish(), "cannot set the default route");
  return done.ok() ? Result<void>() : done.error();
}

}  // namespace bmgpu::agent
