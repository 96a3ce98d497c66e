// Calls of the server: JSON, event streams, the API key, and patience with a server that is busy.

import { askForKey } from "./key_dialog.js";
import { clearNotice, showNotice } from "./notice.js";

const KEY = "heedful-api-key";
const MOST_ATTEMPTS = 6;

/** An answer that says what went wrong. */
export class ApiError extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The JSON answer to a GET, or to a POST where there is a body. */
export async function call(path, body, signal) {
  const answer = await request(path, body, signal);
  return answer.json();
}

/** The events of a streamed answer, each as {event, data}. */
export async function* stream(path, body, signal) {
  const answer = await request(path, { ...body, stream: true }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (waiting + value).replaceAll("\r\n", "\n").split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const found = parseEvent(block);
      if (found === null) continue;
      if (found.event === "error") throw new ApiError(500, found.data.error.message);
      yield found;
    }
  }
}

export function wasAborted(error) {
  return error.name === "AbortError";
}

function parseEvent(block) {
  let event = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

async function request(path, body, signal) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await once(path, body, signal);
      clearNotice("busy");
      return answer;
    } catch (error) {
      if (error.status === 401) {
        const key = await askForKey(sessionStorage.getItem(KEY) !== null);
        if (key === null) throw error;
        sessionStorage.setItem(KEY, key);
      } else if ((error.status === 429 || error.status === 503) && attempt < MOST_ATTEMPTS) {
        showNotice("busy", "The server is busy. Waiting for a place in the queue …");
        await pause(Math.max(1, error.retryAfter) * 1000, signal);
      } else {
        clearNotice("busy");
        throw error;
      }
    }
  }
}

async function once(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key !== null) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { headers, signal, method: body === undefined ? "GET" : "POST" };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  const found = await answer.json().catch(() => null);
  const message = found?.error?.message ?? `The server answered ${answer.status} ${answer.statusText}.`;
  throw new ApiError(answer.status, message, Number(answer.headers.get("Retry-After")) || 0);
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
