#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const tty = require("node:tty");

require("./stepcast-node.js")({
  arguments: process.argv.slice(2),
  thisProgram: "stepcast",
  wasmBinary: fs.readFileSync(path.join(__dirname, "stepcast-node.wasm")),
  // emscripten takes all three for terminals, and colours would stand in files.
  onRuntimeInitialized() {
    for (const fd of [0, 1, 2]) this.FS.streams[fd].tty = tty.isatty(fd);
  },
});
