// SPDX-License-Identifier: Apache-2.0
// Answers requests, a JSON text a line, by the module whose path is the argument.
//   node answers.js build/web/stepcast < requests > answers
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

async function main() {
  const told = [];
  const files = path.resolve(process.argv[2]);
  const module = await require(files + ".js")({
    wasmBinary: fs.readFileSync(files + ".wasm"),
    tell: (text) => void told.push(JSON.parse(text)),
  });
  const answer = module.cwrap("stepcast_answer", "string", ["string"]);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    told.length = 0;
    const start = performance.now();
    const made = JSON.parse(answer(line));
    const took_ms = performance.now() - start;
    process.stdout.write(JSON.stringify({ ...made, told: told.length, took_ms }) + "\n");
  }
}
main();
