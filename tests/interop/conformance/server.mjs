// SPDX-License-Identifier: Apache-2.0
// A server of both eras on the TypeScript SDK v2, with what the conformance suite asks for:
//     node server.mjs            Streamable HTTP on 127.0.0.1, a free port; prints it, and at
//                                its end (SIGTERM) how many calls of tools came in
//     node server.mjs stdio      the same over stdio
// The legacy era has sessions and streams that can be resumed; the other has neither.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/express';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { createMcpHandler, isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { makeServer } from './surface.mjs';

// Events are kept as long as the process lives: it lives for one run of the suite.
class Events {
    kept = [];

    async storeEvent(stream, message) {
        return String(this.kept.push({ stream, message }));
    }

    async getStreamIdForEventId(id) {
        return this.kept[Number(id) - 1]?.stream;
    }

    async replayEventsAfter(last, { send }) {
        const { stream } = this.kept[Number(last) - 1];
        for (let i = Number(last); i < this.kept.length; i++)
            if (this.kept[i].stream === stream && Object.keys(this.kept[i].message).length)
                await send(String(i + 1), this.kept[i].message);
        return stream;
    }
}

const sessions = new Map();

async function openSession() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 500,
        onsessioninitialized: (id) => { sessions.set(id, transport); },
        onsessionclosed: (id) => { sessions.delete(id); },
    });
    const server = makeServer({ tools: () => server.sendToolListChanged(),
        prompts: () => server.sendPromptListChanged() });
    await server.connect(transport);
    return transport;
}

async function serveLegacy(req, res) {
    const id = req.headers['mcp-session-id'];
    const transport = id ? sessions.get(id) : isInitializeRequest(req.body) ? await openSession() : undefined;
    if (transport)
        return transport.handleRequest(req, res, req.body);
    const [status, code, message] = id ? [404, -32001, 'Session not found'] : [400, -32000, 'No session'];
    res.status(status).json({ jsonrpc: '2.0', error: { code, message }, id: null });
}

function serveHttp() {
    const handler = createMcpHandler(() => makeServer({ tools: () => handler.notify.toolsChanged(),
        prompts: () => handler.notify.promptsChanged() }), { legacy: 'reject' });
    const serveModern = toNodeHandler(handler);
    const app = createMcpExpressApp();
    let calls = 0;
    process.on('SIGTERM', () => process.stdout.write(`${calls}\n`, () => process.exit(0)));
    app.all('/mcp', async (req, res) => {
        calls += req.body?.method === 'tools/call';
        const isLegacy = await isLegacyRequest(await toWebRequest(req, req.body), req.body);
        return (isLegacy ? serveLegacy : serveModern)(req, res, req.body);
    });
    const listener = app.listen(0, '127.0.0.1', () => console.log(listener.address().port));
}

if (process.argv[2] === 'stdio')
    serveStdio(() => makeServer({ tools: () => {}, prompts: () => {} }));
else
    serveHttp();
