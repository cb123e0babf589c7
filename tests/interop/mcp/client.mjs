// SPDX-License-Identifier: Apache-2.0
// A plan, carried out by one of the TypeScript SDK's clients:
//     node client.mjs v1|v2 MODE PLAN COMMAND|URL [ARG…]
// MODE is legacy, auto or a protocol version (v2 only). PLAN is a JSON file: a list of steps
// [verb, …]. Prints one line of JSON per answer, last how long the end took.
import { readFileSync } from 'node:fs';

const [sdk, mode, plan, command, ...args] = process.argv.slice(2);
const isUrl = /^https?:/.test(command);
const isOld = isUrl && /\/sse$/.test(command); // HTTP+SSE
const asked = [];
const heard = []; // notifications, as JSON
const HEARING = 10000; // ms until we do not wait for one any more
const TRIES = 5; // to see progress, on a machine that is busy

async function makeV1(info, capabilities) {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } =
        await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info, { capabilities });
    client.setRequestHandler(types.CreateMessageRequestSchema, sample);
    client.setRequestHandler(types.ElicitRequestSchema, elicit);
    client.setRequestHandler(types.ListRootsRequestSchema, roots);
    return [client, isOld ? SSEClientTransport
        : isUrl ? StreamableHTTPClientTransport : StdioClientTransport];
}

async function makeV2(info, capabilities) {
    const { Client, SSEClientTransport, StreamableHTTPClientTransport } =
        await import('@modelcontextprotocol/client');
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const options = { capabilities };
    if (mode !== 'legacy')
        options.versionNegotiation = { mode: mode === 'auto' ? 'auto' : { pin: mode } };
    const client = new Client(info, options);
    client.setRequestHandler('sampling/createMessage', sample);
    client.setRequestHandler('elicitation/create', elicit);
    client.setRequestHandler('roots/list', roots);
    return [client, isOld ? SSEClientTransport
        : isUrl ? StreamableHTTPClientTransport : StdioClientTransport];
}

// What a server may ask us: always the same answer, and a note that it did.
function sample(request) {
    asked.push(request.method);
    return { model: 'none', role: 'assistant', content: { type: 'text', text: 'sampled ü' } };
}

function elicit(request) {
    asked.push(request.method);
    return { action: 'accept', content: { name: 'Ada', check: true } };
}

function roots(request) {
    asked.push(request.method);
    return { roots: process.env.PLAN_ROOT ? [{ uri: 'file://' + process.env.PLAN_ROOT }] : [] };
}

// Text that stands for much text: {"repeat": [text, times]} in the arguments.
function expand(value) {
    if (Array.isArray(value))
        return value.map(expand);
    if (value === null || typeof value !== 'object')
        return value;
    if (value.repeat)
        return value.repeat[0].repeat(value.repeat[1]);
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, expand(v)]));
}

// The first notification that matches, from where on we listen.
async function hear(pattern, from) {
    const end = Date.now() + HEARING;
    let found;
    while (!(found = heard.slice(from).find((n) => n.match(pattern))) && Date.now() < end)
        await new Promise((resolve) => setTimeout(resolve, 10));
    return found ? JSON.parse(found) : null;
}

const call = (client, name, given, options) => sdk === 'v1'
    ? client.callTool({ name, arguments: expand(given) }, undefined, options)
    : client.callTool({ name, arguments: expand(given) }, options);

const verbs = {
    server: async (c) => [c.getServerVersion(), c.getServerCapabilities()],
    ping: (c) => c.ping(),
    tools: (c) => c.listTools(),
    call: (c, name, given) => call(c, name, given),
    many: (c, times, name, given) => // all at once
        Promise.all(Array.from({ length: times }, (_, i) => call(c, name, { ...given, a: i }))),
    progress: async (c, name, given) => {
        const seen = [];
        let answer; // what comes in one read with it comes too late for the SDK: then once more
        for (let i = 0; i < TRIES && !seen.length; i++)
            answer = await call(c, name, given, { onprogress: (p) => seen.push(p) });
        return [answer, seen[0]];
    },
    // When the server has it: over HTTP, what cancels goes by another connection, and may overtake.
    cancel: async (c, name, given) => {
        const stop = new AbortController();
        return call(c, name, given, { signal: stop.signal, onprogress: () => stop.abort('enough') });
    },
    level: (c, level) => c.setLoggingLevel(level),
    subscribe: (c, uri) => c.subscribeResource({ uri }),
    hear: async (c, pattern, verb, ...rest) => {
        const from = heard.length;
        return [await verbs[verb](c, ...rest), await hear(pattern, from)];
    },
    watch: async (c, uri, name, given) => { // 2026-07-28
        const from = heard.length;
        const subscription = await c.listen({ resourceSubscriptions: [uri] });
        const answer = [await call(c, name, given), await hear(uri, from)];
        await subscription.close();
        return answer;
    },
    prompts: (c) => c.listPrompts(),
    prompt: (c, name, given) => c.getPrompt({ name, arguments: given }),
    resources: (c) => c.listResources(),
    read: (c, uri) => c.readResource({ uri }),
};

const info = { name: 'interop', version: '1.0.0' };
const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const [client, Transport] = await (sdk === 'v1' ? makeV1 : makeV2)(info, capabilities);
client.fallbackNotificationHandler = async (n) => { heard.push(JSON.stringify(n)); };
const transport = isUrl ? new Transport(new URL(command))
    : new Transport({ command, args, env: process.env, stderr: 'ignore' });
await client.connect(transport);
for (const [verb, ...rest] of JSON.parse(readFileSync(plan, 'utf8'))) {
    let answer;
    try {
        answer = await verbs[verb](client, ...rest);
    } catch (e) {
        answer = { failed: String(e.message ?? e), code: e.code };
    }
    console.log(JSON.stringify([verb, rest, answer]));
}
// How often is a matter of the server's timers.
console.log(JSON.stringify(['asked', [...new Set(asked)].sort()]));
const started = Date.now();
if (sdk === 'v1' && transport.terminateSession) // v2 leaves without a word
    await transport.terminateSession();
await client.close();
console.error(JSON.stringify({ close_ms: Date.now() - started }));
process.stdout.write('', () => process.exit(0)); // when all is written: a pipe may be full
