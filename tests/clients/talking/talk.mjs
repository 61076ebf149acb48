// Asks what each line of stdin says, by fetch, https or http2, and answers with a line.
import http2 from "node:http2";
import https from "node:https";
import readline from "node:readline";

async function byFetch(request, body, signal) {
  const found = await fetch(request.url, { method: request.method, headers: request.headers, body, signal });
  const content = Buffer.from(await found.arrayBuffer());
  return { status: found.status, headers: Object.fromEntries(found.headers), content };
}

function byHttps(request, body, signal) {
  return new Promise((resolve, reject) => {
    const options = { method: request.method, headers: request.headers, signal };
    const asked = https.request(request.url, options, (found) => {
      const pieces = [];
      found.on("data", (piece) => pieces.push(piece));
      found.on("error", reject);
      found.on("end", () =>
        resolve({ status: found.statusCode, headers: found.headers, content: Buffer.concat(pieces) }),
      );
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

function byHttp2(request, body, signal) {
  return new Promise((resolve, reject) => {
    const { origin, pathname } = new URL(request.url);
    const session = http2.connect(origin);
    const asked = session.request({ ":method": request.method, ":path": pathname, ...request.headers }, { signal });
    const pieces = [];
    let headers;
    const end = (finish, value) => {
      session.close();
      finish(value);
    };
    session.on("error", (error) => end(reject, error));
    asked.on("error", (error) => end(reject, error));
    asked.on("response", (found) => (headers = found));
    asked.on("data", (piece) => pieces.push(piece));
    asked.on("end", () => end(resolve, { status: headers?.[":status"], headers, content: Buffer.concat(pieces) }));
    asked.end(body);
  });
}

const ASK = { fetch: byFetch, https: byHttps, http2: byHttp2 };

async function answer(request) {
  const body = request.body === null ? undefined : Buffer.from(request.body, "base64");
  const signal = AbortSignal.timeout(request.timeout_ms);
  try {
    const { content, ...found } = await ASK[request.client](request, body, signal);
    return { ...found, body: content.toString("base64") };
  } catch (error) {
    return signal.aborted ? { late: true } : { error: `${error} ${error.cause ?? ""}` };
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
