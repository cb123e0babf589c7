// SPDX-License-Identifier: Apache-2.0
// A server on the TypeScript SDK v2 that speaks both eras over stdio; over HTTP where PORT is set.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (t) => ({ content: [{ type: 'text', text: t }] });

// Tells how far it is. Clients lose progress that comes together with the answer.
async function tellSteps({ count }, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= count; progress++) {
        if (progressToken !== undefined)
            await mcpReq.notify({ method: 'notifications/progress',
                params: { progressToken, progress, total: count } });
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return text('done');
}

function makeServer(touched) {
    const server = new McpServer({ name: 'modern', version: '1.0.0' },
        { capabilities: { resources: { subscribe: true } } });
    server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) },
        async ({ message }) => text('Echo: ' + message));
    server.registerTool('sum', { inputSchema: z.object({ a: z.number(), b: z.number() }) },
        async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
    server.registerTool('fail', { inputSchema: z.object({}) },
        async () => { throw new Error('as asked'); });
    server.registerTool('steps', { inputSchema: z.object({ count: z.number() }) }, tellSteps);
    server.registerTool('touch', { inputSchema: z.object({}) }, async () => {
        await touched(server, 'note://one');
        return text('touched');
    });
    // Two round trips in the modern era, a request of the server in the legacy one.
    server.registerTool('greet', { inputSchema: z.object({}) }, async (_, context) => {
        const name = z.object({ name: z.string() });
        const answer = acceptedContent(context.mcpReq.inputResponses, 'who', name);
        if (answer)
            return text('Hello, ' + answer.name);
        return inputRequired({
            inputRequests: { who: inputRequired.elicit({ message: 'Who?', requestedSchema: name }) },
            requestState: 'greeting-1',
        });
    });
    server.registerResource('note', 'note://one', { mimeType: 'text/plain' },
        async (uri) => ({ contents: [{ uri: uri.href, text: 'a note' }] }));
    return server;
}

if (process.env.PORT) {
    const handler = createMcpHandler(() => makeServer((_, uri) => handler.notify.resourceUpdated(uri)));
    createServer(toNodeHandler(handler)).listen(Number(process.env.PORT), '127.0.0.1');
} else {
    serveStdio(() => makeServer((server, uri) => server.server.sendResourceUpdated({ uri })));
}
