// A Beast body that appends what arrives to a string and reserves nothing in advance: a large
// Content-Length alone costs no memory. The owner may take the string away between reads.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <string>

namespace bmgpu::wire {

struct AppendBody {
  using value_type = std::string;

  static std::uint64_t size(const value_type& body) { return body.size(); }

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(boost::beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& result) {
      result = {};
    }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& result) {
      result = {};
      std::size_t count = 0;
      for (auto part = boost::asio::buffer_sequence_begin(buffers);
           part != boost::asio::buffer_sequence_end(buffers); ++part) {
        const boost::asio::const_buffer bytes = *part;
        body_.append(static_cast<const char*>(bytes.data()), bytes.size());
        count += bytes.size();
      }
      return count;
    }
    void finish(boost::system::error_code& result) { result = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace bmgpu::wire
