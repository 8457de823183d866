// SPDX-License-Identifier: Apache-2.0
// The store between processes as they are in a job, and what ranks are told when it fails.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/tcp_store.h"

namespace stepcast {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{5000};

StoreValue value_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

// A process that runs `body`; 0 when it returned true.
pid_t start(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 1;
  try {
    code = body() ? 0 : 2;
  } catch (const std::exception& error) {
    fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(code);
}

int code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string error_text(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A port that nobody listens on, and that stays so while `socket` lives.
struct SilentPort {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  std::uint16_t number = 0;
  explicit SilentPort(bool listens) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listens ? ::listen(socket, 1) : 0, 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number = ntohs(address.sin_port);
  }
  ~SilentPort() { ::close(socket); }
};

TEST(TcpStore, EveryProcessGetsWhatOneHasSet) {
  // Forked before the server's thread exists: the port comes through a pipe.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::vector<pid_t> ranks;
  for (int rank = 1; rank < 5; ++rank) {
    ranks.push_back(start([&, rank] {
      std::uint16_t port = 0;
      if (::read(pipe[0], &port, sizeof port) != sizeof port) return false;
      TcpStore store("localhost", port, kLimit);
      store.set("from/" + std::to_string(rank), value_of(std::string(128, char('a' + rank))));
      // The value is set only after this rank has begun to wait.
      return store.get("unique_id") == value_of(std::string("\0id\xff", 4));
    }));
  }
  const TcpStoreServer server(0);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint16_t port = server.port();
    ASSERT_EQ(::write(pipe[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  }
  TcpStore store("127.0.0.1", server.port(), kLimit);
  for (int rank = 1; rank < 5; ++rank) {
    EXPECT_EQ(store.get("from/" + std::to_string(rank)),
              value_of(std::string(128, char('a' + rank))));
  }
  store.set("unique_id", value_of(std::string("\0id\xff", 4)));
  for (const pid_t child : ranks) EXPECT_EQ(code_of(child), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(TcpStore, LooksWithoutWaitingAndKeepsEmptyValues) {
  const TcpStoreServer server(0);
  TcpStore store("localhost", server.port(), kLimit);
  EXPECT_FALSE(store.look_up("key"));
  store.set("key", {});
  EXPECT_EQ(store.look_up("key"), StoreValue{});
  EXPECT_FALSE(store.look_up("ke"));
  const StoreValue large(65536, std::byte{7});
  store.set("large", large);
  EXPECT_EQ(store.get("large"), large);
}

TEST(TcpStore, AClientThatIsEndedLeavesTheOthersTheirStore) {
  const TcpStoreServer server(0);
  const std::uint16_t port = server.port();
  const pid_t child = start([port] {
    TcpStore store("localhost", port, kLimit);
    store.set("before", value_of("x"));
    ::_exit(0);
    return true;
  });
  EXPECT_EQ(code_of(child), 0);
  TcpStore store("localhost", port, kLimit);
  EXPECT_EQ(store.get("before"), value_of("x"));
}

TEST(TcpStore, AMissingRankIsNamedByItsKey) {
  const TcpStoreServer server(0);
  TcpStore store("localhost", server.port(), milliseconds(100));
  const std::string error = error_text([&] { store.get("id/of/3"); });
  EXPECT_TRUE(has(error, "nobody has set 'id/of/3'")) << error;
  EXPECT_TRUE(has(error, "within 0.1 s")) << error;
}

TEST(TcpStore, AValueIsSetOnce) {
  const TcpStoreServer server(0);
  TcpStore store("localhost", server.port(), kLimit);
  store.set("id", value_of("a"));
  const std::string error = error_text([&] { store.set("id", value_of("b")); });
  EXPECT_TRUE(has(error, "set twice")) << error;
  EXPECT_EQ(store.get("id"), value_of("a"));
}

TEST(TcpStore, AServerThatIsNotThereIsNamed) {
  const SilentPort nobody(false);
  const std::string error =
      error_text([&] { TcpStore("127.0.0.1", nobody.number, milliseconds(120)); });
  EXPECT_TRUE(has(error, "127.0.0.1:" + std::to_string(nobody.number))) << error;
  EXPECT_TRUE(has(error, "MASTER_ADDR")) << error;
}

TEST(TcpStore, AServerThatSaysNothingIsGivenUp) {
  const SilentPort mute(true);
  TcpStore store("127.0.0.1", mute.number, milliseconds(100));
  const std::string error = error_text([&] { store.look_up("id"); });
  EXPECT_TRUE(has(error, "no answer in time")) << error;
}

TEST(TcpStore, AServerThatEndsIsAnErrorOfItsClients) {
  auto server = std::make_unique<TcpStoreServer>(0);
  TcpStore store("localhost", server->port(), kLimit);
  store.set("id", value_of("a"));
  server.reset();
  const std::string error = error_text([&] { store.get("id"); });
  EXPECT_TRUE(has(error, "asked for 'id'")) << error;
}

TEST(TcpStore, ATakenPortIsAnError) {
  const SilentPort taken(true);
  const std::string error = error_text([&] { const TcpStoreServer server(taken.number); });
  EXPECT_TRUE(has(error, "port " + std::to_string(taken.number))) << error;
  EXPECT_TRUE(has(error, "MASTER_PORT")) << error;
}

TEST(TcpStore, BytesOfAStrangerEndTheirConnectionAlone) {
  const TcpStoreServer server(0);
  TcpStore store("localhost", server.port(), kLimit);
  const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(server.port());
  ASSERT_EQ(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string text = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(stranger, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  char byte = 0;
  EXPECT_LE(::recv(stranger, &byte, 1, 0), 0);  // closed
  ::close(stranger);
  store.set("id", value_of("a"));
  EXPECT_EQ(store.get("id"), value_of("a"));
}

}  // namespace
}  // namespace stepcast
