// SPDX-License-Identifier: Apache-2.0
// A server on the TypeScript SDK v2 that speaks both eras over stdio.
import { McpServer, acceptedContent, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (t) => ({ content: [{ type: 'text', text: t }] });

serveStdio(() => {
    const server = new McpServer({ name: 'modern', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) },
        async ({ message }) => text('Echo: ' + message));
    server.registerTool('sum', { inputSchema: z.object({ a: z.number(), b: z.number() }) },
        async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
    server.registerTool('fail', { inputSchema: z.object({}) },
        async () => { throw new Error('as asked'); });
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
});
