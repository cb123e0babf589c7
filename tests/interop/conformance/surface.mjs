// SPDX-License-Identifier: Apache-2.0
// What the conformance suite asks a server for by name: tools, resources, prompts. The texts
// and schemas are those that its scenarios compare with.
import { McpServer, ResourceTemplate, acceptedContent, completable, createRequestStateCodec,
    fromJsonSchema, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { z } from 'zod';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==';
const codec = createRequestStateCodec({ key: 'a key for a test, 32 bytes long.', ttlSeconds: 60 });

const none = z.object({});
const text = (t) => ({ content: [{ type: 'text', text: t }] });
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const embedded = (uri, mimeType, t) => ({ type: 'resource', resource: { uri, mimeType, text: t } });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const user = (content) => ({ role: 'user', content });

function addContent(server) {
    const simple = {
        test_simple_text: text('This is a simple text response for testing.'),
        test_image_content: { content: [image] },
        test_audio_content: { content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] },
        test_embedded_resource: { content: [embedded('test://embedded-resource', 'text/plain',
            'This is an embedded resource content.')] },
        test_multiple_content_types: { content: [
            { type: 'text', text: 'Multiple content types test:' }, image,
            embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')] },
    };
    for (const [name, result] of Object.entries(simple))
        server.registerTool(name, { description: name, inputSchema: none }, async () => result);
    server.registerTool('test_error_handling', { description: 'fails', inputSchema: none },
        async () => { throw new Error('This tool intentionally returns an error for testing'); });
}

function addSchemas(server) {
    server.registerTool('json_schema_2020_12_tool', {
        description: 'Tool with JSON Schema 2020-12 features',
        inputSchema: fromJsonSchema({
            $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object',
            $defs: { address: { $anchor: 'addressDef', type: 'object',
                properties: { street: { type: 'string' }, city: { type: 'string' } } } },
            properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' },
                contactMethod: { type: 'string', enum: ['phone', 'email'] },
                phone: { type: 'string' }, email: { type: 'string' } },
            allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
            if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
            then: { required: ['phone'] }, else: { required: ['email'] },
            additionalProperties: false,
        }),
    }, async (given) => text(JSON.stringify(given)));
    server.registerTool('test_headers_of_arguments', {
        description: 'Arguments that are mirrored in headers',
        inputSchema: fromJsonSchema({ type: 'object', properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            limit: { type: 'integer', 'x-mcp-header': 'Limit' },
            note: { type: 'string' } }, required: ['region'] }),
    }, async (given) => text(JSON.stringify(given)));
}

function addStreams(server) {
    server.registerTool('test_tool_with_logging', { description: 'logs', inputSchema: none },
        async (_, c) => {
            for (const line of ['Tool execution started', 'Tool processing data']) {
                await c.mcpReq.log('info', line);
                await pause(50);
            }
            await c.mcpReq.log('info', 'Tool execution completed');
            return text('logged');
        });
    server.registerTool('test_tool_with_progress', { description: 'tells', inputSchema: none },
        async (_, c) => {
            const progressToken = c.mcpReq._meta?.progressToken;
            for (const progress of [0, 50, 100]) {
                if (progressToken !== undefined)
                    await c.mcpReq.notify({ method: 'notifications/progress',
                        params: { progressToken, progress, total: 100, message: `${progress} of 100` } });
                if (progress < 100)
                    await pause(50);
            }
            return text(String(progressToken));
        });
    server.registerTool('test_reconnection', { description: 'closes its stream', inputSchema: none },
        async (_, c) => {
            c.http?.closeSSE?.();
            await pause(100);
            return text('after the stream was closed');
        });
    server.registerTool('test_logging_tool', { description: 'logs if asked', inputSchema: none },
        async (_, c) => {
            await c.mcpReq.log('info', 'asked for');
            return text('logged if asked');
        });
}

const enums = {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: [{ const: 'value1', title: 'First Option' },
        { const: 'value2', title: 'Second Option' }, { const: 'value3', title: 'Third Option' }] },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: [{ const: 'value1', title: 'First Choice' },
        { const: 'value2', title: 'Second Choice' }, { const: 'value3', title: 'Third Choice' }] } },
};
const defaults = {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
};

// Requests of a server to its client: the legacy era.
function addAsking(server) {
    const ask = (name, properties, required) =>
        server.registerTool(name, { description: name, inputSchema: none }, async (_, c) => {
            const said = await c.mcpReq.elicitInput({ message: 'Please fill in',
                requestedSchema: { type: 'object', properties, required } });
            return text(`Elicitation completed: action=${said.action}, content=${JSON.stringify(said.content ?? {})}`);
        });
    ask('test_elicitation_sep1034_defaults', defaults, []);
    ask('test_elicitation_sep1330_enums', enums, []);
    server.registerTool('test_elicitation',
        { description: 'asks the user', inputSchema: z.object({ message: z.string() }) },
        async ({ message }, c) => {
            const said = await c.mcpReq.elicitInput({ message, requestedSchema: { type: 'object',
                properties: { username: { type: 'string', description: "User's response" },
                    email: { type: 'string', description: "User's email address" } },
                required: ['username', 'email'] } });
            return text(`User response: ${JSON.stringify(said)}`);
        });
    server.registerTool('test_sampling',
        { description: 'asks a model', inputSchema: z.object({ prompt: z.string() }) },
        async ({ prompt }, c) => {
            const said = await c.mcpReq.requestSampling({ maxTokens: 100,
                messages: [user({ type: 'text', text: prompt })] });
            return text(`LLM response: ${said.content.text ?? ''}`);
        });
}

const elicit = (message, property, type) => inputRequired.elicit({ message,
    requestedSchema: { type: 'object', properties: { [property]: { type } }, required: [property] } });
const sample = (question, maxTokens) => inputRequired.createMessage({ maxTokens,
    messages: [user({ type: 'text', text: question })] });
const accepted = (c, key, property) => {
    const content = acceptedContent(c.mcpReq.inputResponses, key);
    return content && property in content ? content[property] : undefined;
};
const state = (value) => codec.mint({ value });
const stateOf = (c) => c.mcpReq.requestState()?.value;
const given = (c, key) => inputResponse(c.mcpReq.inputResponses, key);

// The same in the era without requests of the server: answers that ask, and a second call.
function addRounds(server) {
    const tool = (name, body) =>
        server.registerTool(name, { description: name, inputSchema: none }, (_, c) => body(c));
    tool('test_input_required_result_elicitation', async (c) => {
        const name = accepted(c, 'user_name', 'name');
        return typeof name === 'string' ? text(`Hello, ${name}!`)
            : inputRequired({ inputRequests: { user_name: elicit('What is your name?', 'name', 'string') } });
    });
    tool('test_input_required_result_sampling', async (c) => {
        const said = given(c, 'capital_question');
        return said.kind === 'sampling' ? text(said.result.content.text)
            : inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } });
    });
    tool('test_input_required_result_list_roots', async (c) => {
        const said = given(c, 'client_roots');
        return said.kind === 'roots' ? text(said.roots.map((r) => r.uri).join(' '))
            : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    });
    for (const name of ['request_state', 'tampered_state'])
        tool('test_input_required_result_' + name, async (c) => accepted(c, 'confirm', 'ok') !== undefined
            && stateOf(c) === name ? text('state-ok')
            : inputRequired({ inputRequests: { confirm: elicit('Please confirm', 'ok', 'boolean') },
                requestState: await state(name) }));
    tool('test_input_required_result_multiple_inputs', async (c) => {
        const all = ['user_name', 'greeting', 'client_roots'].every((k) => given(c, k).kind !== 'missing');
        return all && stateOf(c) === 'many' ? text('all are there')
            : inputRequired({ inputRequests: { user_name: elicit('What is your name?', 'name', 'string'),
                greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
            requestState: await state('many') });
    });
    tool('test_input_required_result_multi_round', async (c) => {
        if (stateOf(c) === 'two' && accepted(c, 'step2', 'color') !== undefined)
            return text('both steps are done');
        if (stateOf(c) === 'one' && accepted(c, 'step1', 'name') !== undefined)
            return inputRequired({ requestState: await state('two'), inputRequests: {
                step2: elicit('Step 2: What is your favorite color?', 'color', 'string') } });
        return inputRequired({ requestState: await state('one'), inputRequests: {
            step1: elicit('Step 1: What is your name?', 'name', 'string') } });
    });
    tool('test_input_required_result_capabilities', async (c) => {
        const able = c.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
        const inputRequests = {};
        if (able.sampling)
            inputRequests.sampled = sample('Anything', 10);
        if (able.elicitation)
            inputRequests.elicited = elicit('Anything?', 'ok', 'boolean');
        return Object.keys(inputRequests).length ? inputRequired({ inputRequests }) : text('nobody to ask');
    });
    tool('test_streaming_elicitation', async () =>
        inputRequired({ inputRequests: { ok: elicit('Streaming?', 'ok', 'boolean') } }));
    tool('test_missing_capability', async () =>
        inputRequired({ inputRequests: { sampled: sample('Anything', 10) } }));
}

function addResources(server) {
    const plain = { mimeType: 'text/plain' };
    server.registerResource('static-text', 'test://static-text', plain, async (uri) => ({ contents: [
        { uri: uri.href, ...plain, text: 'This is the content of the static text resource.' }] }));
    server.registerResource('static-binary', 'test://static-binary', { mimeType: 'image/png' },
        async (uri) => ({ contents: [{ uri: uri.href, mimeType: 'image/png', blob: PIXEL }] }));
    server.registerResource('watched', 'test://watched-resource', plain,
        async (uri) => ({ contents: [{ uri: uri.href, ...plain, text: 'watched' }] }));
    server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { mimeType: 'application/json' }, async (uri, { id }) => ({ contents: [{ uri: uri.href,
            mimeType: 'application/json',
            text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));
}

function addPrompts(server) {
    server.registerPrompt('test_simple_prompt', { description: 'simple' }, async () =>
        ({ messages: [user({ type: 'text', text: 'This is a simple prompt for testing.' })] }));
    const words = (v) => ['paris', 'park', 'party'].filter((w) => w.startsWith(v));
    server.registerPrompt('test_prompt_with_arguments', { description: 'two arguments',
        argsSchema: z.object({ arg1: completable(z.string(), words), arg2: completable(z.string(), words) }) },
    async ({ arg1, arg2 }) => ({ messages: [
        user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })] }));
    server.registerPrompt('test_prompt_with_embedded_resource', { description: 'a resource',
        argsSchema: z.object({ resourceUri: z.string() }) }, async ({ resourceUri }) => ({ messages: [
        user(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
        user({ type: 'text', text: 'Please process the embedded resource above.' })] }));
    server.registerPrompt('test_prompt_with_image', { description: 'an image' }, async () => ({ messages: [
        user(image), user({ type: 'text', text: 'Please analyze the image above.' })] }));
    server.registerPrompt('test_input_required_result_prompt', { description: 'asks first' }, async (c) => {
        const context = accepted(c, 'user_context', 'context');
        return context === undefined ? inputRequired({ inputRequests: { user_context:
            elicit('What context should the prompt use?', 'context', 'string') } })
            : { messages: [user({ type: 'text', text: `In the context of ${context}` })] };
    });
}

// `changed` tells those who listen that a list is another one now: {tools(), prompts()}.
export function makeServer(changed) {
    const server = new McpServer({ name: 'conformance-fixture', version: '1.0.0' }, {
        capabilities: { logging: {}, tools: { listChanged: true }, prompts: { listChanged: true },
            resources: { subscribe: true, listChanged: true }, completions: {} },
        requestState: { verify: codec.verify },
    });
    server.server.setRequestHandler('resources/subscribe', async () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
    for (const add of [addContent, addSchemas, addStreams, addAsking, addRounds, addResources, addPrompts])
        add(server);
    for (const [name, tell] of [['tool', changed.tools], ['prompt', changed.prompts]])
        server.registerTool(`test_trigger_${name}_change`, { description: 'tells', inputSchema: none },
            async () => { tell(); return text('told'); });
    return server;
}
