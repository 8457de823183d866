// SPDX-License-Identifier: Apache-2.0
// While one exists, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process, so that
// whoever has children to stop and files to remove can do so. What was set before is set again when
// the last one goes; a signal that was ignored stays ignored (nohup, a shell's background jobs).
//
// Watches of one process share what they note: each launch under way sees the interrupt.
#pragma once

namespace stepcast {

class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int file() const;    // readable from the first signal on; to be polled, never to be read
  int signal() const;  // the first one, 0: none yet
  int count() const;   // a second one means "now"
};

}  // namespace stepcast
