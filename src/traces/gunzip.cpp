// SPDX-License-Identifier: Apache-2.0
#include "traces/gunzip.h"

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/operations.hpp>

namespace stepcast {
namespace {

namespace io = boost::iostreams;

constexpr std::streamsize kUnpacked = std::streamsize{1} << 20;

struct Enough {};

}  // namespace

struct Gunzip::State {
  struct Sink {
    using char_type = char;
    using category = io::sink_tag;
    std::streamsize write(const char* text, std::streamsize size) {
      if (size > 0 && !take({text, static_cast<std::size_t>(size)})) throw Enough();
      return size;
    }
    Gunzip::Take take;
  };
  explicit State(Take take) : sink{std::move(take)} {}
  Sink sink;
  io::gzip_decompressor unpacker{io::gzip::default_window_bits, kUnpacked};
  bool is_damaged = false;
};

Gunzip::Gunzip(Take take) : state_(std::make_unique<State>(std::move(take))) {}

Gunzip::~Gunzip() = default;

bool Gunzip::feed(std::string_view packed) {
  try {
    io::write(state_->unpacker, state_->sink, packed.data(),
              static_cast<std::streamsize>(packed.size()));
    return true;
  } catch (const Enough&) {
    return false;
  } catch (const io::gzip_error&) {
    state_->is_damaged = true;
    return false;
  }
}

std::string Gunzip::wrong() {
  const std::string damaged = "is damaged: it is no gzip from some place on";
  if (state_->is_damaged) return damaged;
  try {
    io::close(state_->unpacker, state_->sink, std::ios_base::out);
    return "";
  } catch (const io::gzip_error& error) {
    const bool is_other = error.error() == io::gzip::bad_crc;
    return is_other ? damaged : "was cut: its gzip does not end";
  }
}

}  // namespace stepcast
