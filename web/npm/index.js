// SPDX-License-Identifier: Apache-2.0
// The forecasts as functions. Each takes plain objects and gives plain objects, in the formats of
// the program's JSON; mistakes are a StepcastError with all of them.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const create = require("./stepcast-node.js");

class StepcastError extends Error {
  constructor(errors) {
    super(errors.map((error) => error.text).join("\n"));
    this.name = "StepcastError";
    this.errors = errors;
  }
}

async function load() {
  let listener = null;
  const module = await create({
    noInitialRun: true,
    wasmBinary: fs.readFileSync(path.join(__dirname, "stepcast-node.wasm")),
    tell: (text) => (listener ? listener(JSON.parse(text)) !== false : true),
  });
  const answer = module.cwrap("stepcast_answer", "string", ["string"]);
  const ask = (call, args) => {
    const out = JSON.parse(answer(JSON.stringify({ call, arguments: args })));
    if (out.errors) throw new StepcastError(out.errors);
    return out;
  };
  return {
    ask,
    predict: (scenario, options = {}) => JSON.parse(ask("predict", { scenario, ...options }).json),
    compare: (scenarios) => JSON.parse(ask("compare", { scenarios }).json),
    plan(scenario, { progress, ...options } = {}) {
      listener = progress ?? null;
      try {
        const { json, layouts, proven } = ask("plan", { scenario, ...options });
        return { ...JSON.parse(json), layouts, proven };
      } finally {
        listener = null;
      }
    },
    list: (topic, filter = "") => JSON.parse(ask("list", { topic, filter }).json),
  };
}

module.exports = { load, StepcastError };
