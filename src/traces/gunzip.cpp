// SPDX-License-Identifier: Apache-2.0
#include "traces/gunzip.h"

#include <zlib.h>

#include <new>
#include <vector>

namespace stepcast {
namespace {

constexpr std::size_t kUnpacked = std::size_t{1} << 20;
constexpr int kGzipAlone = 15 + 16;  // zlib.h: the largest window, and a gzip head

}  // namespace

struct Gunzip::State {
  explicit State(Take to) : take(std::move(to)), unpacked(kUnpacked) {}
  Take take;
  z_stream stream{};
  std::vector<char> unpacked;
  bool is_damaged = false;
  bool is_whole = false;  // the last member has ended
};

Gunzip::Gunzip(Take take) : state_(std::make_unique<State>(std::move(take))) {
  if (::inflateInit2(&state_->stream, kGzipAlone) != Z_OK) throw std::bad_alloc();
}

Gunzip::~Gunzip() { ::inflateEnd(&state_->stream); }

bool Gunzip::feed(std::string_view packed) {
  State& state = *state_;
  z_stream& stream = state.stream;
  // zlib does not write there; its interface is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  while (stream.avail_in > 0) {
    // A file may have several members, one behind the other.
    if (state.is_whole && ::inflateReset(&stream) != Z_OK) return false;
    state.is_whole = false;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(state.unpacked.data());
      stream.avail_out = static_cast<uInt>(state.unpacked.size());
      const int outcome = ::inflate(&stream, Z_NO_FLUSH);
      const std::size_t got = state.unpacked.size() - stream.avail_out;
      if (got > 0 && !state.take({state.unpacked.data(), got})) return false;
      if (outcome == Z_STREAM_END) {
        state.is_whole = true;
        break;
      }
      if (outcome == Z_BUF_ERROR) break;  // it wants more
      if (outcome != Z_OK) {
        state.is_damaged = true;
        return false;
      }
    } while (stream.avail_in > 0 || stream.avail_out == 0);
  }
  return true;
}

std::string Gunzip::wrong() const {
  if (state_->is_damaged) return "is damaged: it is no gzip from some place on";
  return state_->is_whole ? "" : "was cut: its gzip does not end";
}

}  // namespace stepcast
