#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
"use strict";

const fs = require("node:fs");
const path = require("node:path");

require("./stepcast-node.js")({
  arguments: process.argv.slice(2),
  thisProgram: "stepcast",
  wasmBinary: fs.readFileSync(path.join(__dirname, "stepcast-node.wasm")),
});
