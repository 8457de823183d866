// SPDX-License-Identifier: Apache-2.0
// Answers requests of the page one by one, beside its thread. It is made from a text inside the page,
// since pages from a disk may load no file.
"use strict";

// The WebAssembly stands below as gzip in base64: that is a quarter of it, and no fetch.
async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function create() {
  const module = await createStepcast({
    wasmBinary: await unpacked(kModule),
    tell: (text) => void postMessage({ progress: JSON.parse(text) }),
  });
  return module.cwrap("stepcast_answer", "string", ["string"]);
}
const ready = create();

onmessage = async (event) => {
  const { id, request } = event.data;
  let answer;
  try {
    answer = JSON.parse((await ready)(JSON.stringify(request)));
  } catch (error) {
    // A fault of the module: what it has left in memory is not to be trusted.
    answer = { errors: [{ message: String(error), path: "", hint: "", text: String(error) }], broken: true };
  }
  postMessage({ id, answer });
};
