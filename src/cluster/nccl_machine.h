// SPDX-License-Identifier: Apache-2.0
// The machines of a topology file of NCCL or RCCL, before they are a graph: GPUs and NICs in the
// order of their numbers, and the slots that they hang on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {
struct XmlElement;
}

namespace stepcast::nccl {

struct Cable {
  std::string from, to;
  double rate = 0;
};

struct Gpu {
  std::string name, bus, above;  // `above`: the part that it hangs on
  double dev = 0;
  double sm = 0;
  std::string device;
  std::map<std::string, double> cables;  // by the bus of the GPU they lead to
  double to_switch = 0;
  double c2c = 0;
};

struct Nic {
  std::string name, above;
  double dev = 0;
  double rate = 0;
  bool is_with_gpus = false;  // it shares a PCIe switch with a GPU
};

struct Machine {
  std::string hash;
  std::vector<std::string> hosts, switches;
  std::vector<double> socket_rates;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<Cable> cables;  // of PCIe and between sockets
};

struct File {
  std::vector<Machine> machines;  // one at least, each with a GPU
  std::string network;            // by the names of NICs; empty where they do not tell
  std::string cpu;                // as a cluster names it
  bool has_links = false;         // of NVLink or xGMI
  bool is_dump = false;  // NCCL wrote it; files written by hand leave out what NCCL finds itself
};

// Leaves out NICs that share no switch with a GPU, where each GPU has one that does: those are the
// storage's.
void leave_out_lone_nics(Machine& machine);

// `file` is its name in errors.
Result<File> read_machines(const XmlElement& root, const std::string& file);

}  // namespace stepcast::nccl
